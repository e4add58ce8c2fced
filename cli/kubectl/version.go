package kubectl

import (
	"runtime/debug"
	"strings"
	_ "unsafe" // for go:linkname

	_ "k8s.io/client-go/pkg/version"
	"k8s.io/component-base/version"
)

// These are what the build of Kubernetes sets with -ldflags, which a `go
// install` cannot. Without them kubectl takes itself for version 0.0: it warns
// of every server, and tells servers so.
//
//go:linkname gitVersion k8s.io/component-base/version.gitVersion
var gitVersion string

//go:linkname gitMajor k8s.io/component-base/version.gitMajor
var gitMajor string

//go:linkname gitMinor k8s.io/component-base/version.gitMinor
var gitMinor string

//go:linkname gitCommit k8s.io/component-base/version.gitCommit
var gitCommit string

//go:linkname clientVersion k8s.io/client-go/pkg/version.gitVersion
var clientVersion string

//go:linkname clientCommit k8s.io/client-go/pkg/version.gitCommit
var clientCommit string

// setVersion takes the version from the module that this is built with:
// k8s.io/kubectl v0.37.2 is kubectl 1.37.2.
func setVersion() {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return
	}
	for _, dep := range info.Deps {
		if rest, ok := strings.CutPrefix(dep.Version, "v0."); ok && dep.Path == "k8s.io/kubectl" {
			gitVersion, gitMajor, gitCommit = "v1."+rest+"+evenkeel", "1", ""
			gitMinor, _, _ = strings.Cut(rest, ".")
			clientVersion, clientCommit = gitVersion, ""
			_ = version.SetDynamicVersion(gitVersion) // it equals the static one, so it cannot fail
		}
	}
}
