package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// result is what a user sees of one call.
type result struct {
	code           int
	stdout, stderr string
}

func evenkeel(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

func TestErrors(t *testing.T) {
	tests := map[string]struct {
		args []string
		want result
	}{
		"a typo gets a suggestion": {
			args: []string{"verison"},
			want: result{code: ExitUsage, stderr: "evenkeel: unknown command \"verison\" for \"evenkeel\"\n" +
				"Did you mean this?\n\tversion\nRun 'evenkeel --help' for usage.\n"},
		},
		"a typo with flags that are not the root's": {
			args: []string{"verison", "-o", "json"},
			want: result{code: ExitUsage, stderr: "evenkeel: unknown command \"verison\" for \"evenkeel\"\n" +
				"Did you mean this?\n\tversion\nRun 'evenkeel --help' for usage.\n"},
		},
		"a word that is like nothing we know": {
			args: []string{"frobnicate"},
			want: result{code: ExitUsage, stderr: "evenkeel: unknown command \"frobnicate\" for \"evenkeel\"\n" +
				"Run 'evenkeel --help' for usage.\n"},
		},
		"help of a typo": {
			args: []string{"help", "serv"},
			want: result{code: ExitUsage, stderr: "evenkeel: unknown command \"serv\" for \"evenkeel\"\n" +
				"Did you mean this?\n\tserve\nRun 'evenkeel help --help' for usage.\n"},
		},
		"an unknown flag": {
			args: []string{"serve", "--nope"},
			want: result{code: ExitUsage, stderr: "evenkeel: unknown flag: --nope\nRun 'evenkeel serve --help' for usage.\n"},
		},
		"an unknown flag of the root": {
			args: []string{"--nope"},
			want: result{code: ExitUsage, stderr: "evenkeel: unknown flag: --nope\nRun 'evenkeel --help' for usage.\n"},
		},
		"an argument too many": {
			args: []string{"version", "please"},
			want: result{code: ExitUsage, stderr: "evenkeel: version takes no arguments, but got \"please\"\n" +
				"Run 'evenkeel version --help' for usage.\n"},
		},
		"an output that does not exist": {
			args: []string{"version", "-o", "xml"},
			want: result{code: ExitUsage, stderr: "evenkeel: invalid argument \"xml\" for \"-o, --output\" flag: want one of: text, json\n" +
				"Run 'evenkeel version --help' for usage.\n"},
		},
		"a log level that does not exist": {
			args: []string{"serve", "--log-level", "loud"},
			want: result{code: ExitUsage, stderr: "evenkeel: invalid argument \"loud\" for \"--log-level\" flag: want one of: debug, info, warn, error\n" +
				"Run 'evenkeel serve --help' for usage.\n"},
		},
		"a log format that does not exist": {
			args: []string{"--log-format=xml", "serve"},
			want: result{code: ExitUsage, stderr: "evenkeel: invalid argument \"xml\" for \"--log-format\" flag: want one of: auto, text, json\n" +
				"Run 'evenkeel serve --help' for usage.\n"},
		},
		"a controller that does not exist": {
			args: []string{"serve", "--controllers", "*,-cron"},
			want: result{code: ExitFailure, stderr: "evenkeel: serve: --controllers: there is no such controller: \"cron\"; there are " +
				strings.Join(planeNames(), ", ") + "\n"},
		},
		"a machine is one node": {
			args: []string{"serve", "--runtime", "process", "--nodes", "2"},
			want: result{code: ExitFailure, stderr: "evenkeel: serve: --nodes 2 --runtime process: this machine is one node; only simulated nodes can be many\n"},
		},
		"fewer nodes than none": {
			args: []string{"serve", "--nodes", "-1"},
			want: result{code: ExitFailure, stderr: "evenkeel: serve: --nodes -1: there cannot be fewer than none\n"},
		},
		"an agent without nodes": {
			args: []string{"node", "--nodes", "0"},
			want: result{code: ExitFailure, stderr: "evenkeel: node: --nodes 0 is no node\n"},
		},
		"serve says what is missing and what to do": {
			args: []string{"serve", "--storage", "etcd", "--listen", "127.0.0.1:0"},
			want: result{code: ExitFailure, stderr: "evenkeel: serve: --storage etcd needs to know where etcd is\n" +
				"Say so with --etcd-endpoints, for example --etcd-endpoints http://127.0.0.1:2379.\n"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := evenkeel(t, tt.args...)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("evenkeel %s (-want +got):\n%s", strings.Join(tt.args, " "), diff)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"no arguments":      {nil, []string{"Usage:\n  evenkeel [command]", "  serve ", "  version ", "--log-level debug|info|warn|error"}},
		"--help":            {[]string{"--help"}, []string{"Usage:\n  evenkeel [command]"}},
		"help":              {[]string{"help"}, []string{"Usage:\n  evenkeel [command]"}},
		"help of a command": {[]string{"help", "serve"}, []string{"Usage:\n  evenkeel serve", "Examples:\n  evenkeel serve", "--data-dir"}},
		"command --help":    {[]string{"version", "--help"}, []string{"Examples:\n  evenkeel version", "-o, --output text|json"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := evenkeel(t, tt.args...)
			if got.code != ExitOK || got.stderr != "" {
				t.Errorf("exit code %d, stderr %q, want help on stdout only", got.code, got.stderr)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("help lacks %q:\n%s", want, got.stdout)
				}
			}
		})
	}
}

func TestEveryCommandHasHelpAndExample(t *testing.T) {
	for _, cmd := range newRoot(&app{}).Commands() {
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s lacks a short text, a long text or an example", cmd.CommandPath())
		}
	}
}

// A test binary does not record its modules: what the real one says is tested
// in cmd/evenkeel.
func TestVersion(t *testing.T) {
	got := evenkeel(t, "version")
	want := result{stdout: fmt.Sprintf("evenkeel    %s\nkubernetes  %s (types)\ngo          %s\nplatform    %s/%s\n",
		readVersion().Evenkeel, readVersion().Kubernetes, runtime.Version(), runtime.GOOS, runtime.GOARCH)}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("evenkeel version (-want +got):\n%s", diff)
	}
}

func TestVersionFlag(t *testing.T) {
	got := evenkeel(t, "--version")
	if got.code != ExitOK || !strings.HasPrefix(got.stdout, "evenkeel ") || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("got %+v, want one line on stdout", got)
	}
}

func TestLogFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want func(line string) bool
	}{
		"json off a terminal":     {nil, func(l string) bool { return json.Valid([]byte(l)) && strings.Contains(l, `"msg":"ready"`) }},
		"json when asked for":     {[]string{"--log-format=json"}, func(l string) bool { return json.Valid([]byte(l)) }},
		"text when asked for":     {[]string{"--log-format=text"}, func(l string) bool { return strings.Contains(l, " INFO  ready address=") }},
		"a level that hides more": {[]string{"--log-level=error"}, func(l string) bool { return l == "" }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := startServe(t, tt.args...)
			s.stop(t)
			first, _, _ := strings.Cut(s.stderr.String(), "\n")
			if !tt.want(first) {
				t.Errorf("first line on stderr is %q", first)
			}
		})
	}
}

// brokenPipe is a stdout whose reader has gone.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestFailedOutputIsAFailure(t *testing.T) {
	for _, output := range []string{"text", "json"} {
		var stderr bytes.Buffer
		code := Execute(context.Background(), []string{"version", "-o", output}, nil, brokenPipe{}, &stderr)
		if want := "evenkeel: broken pipe\n"; code != ExitFailure || stderr.String() != want {
			t.Errorf("%s: exit code %d, stderr %q, want %d and %q", output, code, stderr.String(), ExitFailure, want)
		}
	}
}
