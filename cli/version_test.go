package cli

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/version"
)

func TestVersionOf(t *testing.T) {
	apimachinery := []*debug.Module{
		{Path: "github.com/spf13/cobra", Version: "v1.10.2"},
		{Path: "k8s.io/apimachinery", Version: "v0.37.2"},
	}
	tests := map[string]struct {
		info     debug.BuildInfo
		override string
		want     versionInfo
	}{
		"installed from a release": {
			info: debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Deps: apimachinery},
			want: versionInfo{
				Info:     version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2+evenkeel.0.1.0"},
				Evenkeel: "v0.1.0", Kubernetes: "1.37.2",
			},
		},
		"built with a version given": {
			info:     debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Deps: apimachinery},
			override: "v0.2.0-3-gabc",
			want: versionInfo{
				Info:     version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2+evenkeel.0.2.0-3-gabc"},
				Evenkeel: "v0.2.0-3-gabc", Kubernetes: "1.37.2",
			},
		},
		"built in a working tree": {
			info: debug.BuildInfo{
				Main: debug.Module{Version: "v0.0.0-20260101000000-abcdefabcdef+dirty"}, Deps: apimachinery,
				Settings: []debug.BuildSetting{
					{Key: "vcs.revision", Value: "abcdef"},
					{Key: "vcs.time", Value: "2026-01-01T00:00:00Z"},
					{Key: "vcs.modified", Value: "true"},
				},
			},
			want: versionInfo{
				Info: version.Info{
					Major: "1", Minor: "37", GitVersion: "v1.37.2+evenkeel.0.0.0-20260101000000-abcdefabcdef.dirty",
					GitCommit: "abcdef", GitTreeState: "dirty", BuildDate: "2026-01-01T00:00:00Z",
				},
				Evenkeel: "v0.0.0-20260101000000-abcdefabcdef+dirty", Kubernetes: "1.37.2",
			},
		},
		"built with a replaced module": {
			info: debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Deps: []*debug.Module{{
				Path: "k8s.io/apimachinery", Version: "v0.37.2",
				Replace: &debug.Module{Path: "example.org/fork", Version: "v0.38.0-rc.1"},
			}}},
			want: versionInfo{
				Info:     version.Info{Major: "1", Minor: "38", GitVersion: "v1.38.0-rc.1+evenkeel.devel"},
				Evenkeel: "devel", Kubernetes: "1.38.0-rc.1",
			},
		},
		"nothing known": {
			want: versionInfo{Evenkeel: unknown, Kubernetes: unknown},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := versionOf(&tt.info, tt.override)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("version (-want +got):\n%s", diff)
			}
		})
	}
}
