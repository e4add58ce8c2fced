package arch

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// tiny is a policy with one of everything.
var tiny = Policy{
	Module: "example.org/ours",
	Rules: []Rule{
		{Folder: "low"},
		{Folder: "high", May: []string{"low", "family/*"}, Tests: []string{"probe"}},
		{Folder: "family/*", May: []string{"low"}},
		{Folder: "probe", May: []string{"high"}},
		{Folder: "suite"},
		{Folder: "cmd/main"},
		{Folder: "nested/...", May: []string{"low", "nested/..."}, OwnModule: true},
	},
	Tests: []string{"suite"},
	Limits: []Limit{
		{Path: "heavy.org/db", Only: []string{"low", "nested/..."}, Why: "only low knows it"},
		{Path: "never.org/any", Why: "nobody needs it"},
	},
	BadNames:        []string{"util"},
	NotInRoot:       []string{"test.org/checker"},
	KubernetesMinor: "v0.37.",
	MaxLines:        map[string]int{"cmd/main": 3},
}

// files maps a path to its content; go.mod files of the root and of nested
// are added where a case has none.
type files map[string]string

func (f files) fs() fs.FS {
	tree := fstest.MapFS{
		"go.mod":        {Data: []byte("module example.org/ours\n")},
		"nested/go.mod": {Data: []byte("module example.org/ours/nested\n")},
	}
	for name, content := range f {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return tree
}

// pkg is the source of a file that imports what is named.
func pkg(name string, imports ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n", name)
	for _, i := range imports {
		fmt.Fprintf(&b, "import _ %q\n", i)
	}
	return b.String()
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		files files
		want  []string
	}{
		"what the table allows": {
			files: files{
				"low/low.go":         pkg("low", "fmt", "other.org/thing", "heavy.org/db/v2/vfs"),
				"high/high.go":       pkg("high", "example.org/ours/low", "example.org/ours/family/a"),
				"family/a/a.go":      pkg("a", "example.org/ours/low"),
				"nested/a.go":        pkg("nested", "example.org/ours/low", "example.org/ours/nested/deep", "heavy.org/db"),
				"nested/deep/b/c.go": pkg("b", "heavy.org/db"),
				"heavy.go.txt":       "not Go",
			},
		},
		"an import that goes up": {
			files: files{"low/low.go": pkg("low", "example.org/ours/high")},
			want:  []string{"low/low.go: imports example.org/ours/high, but low may import of ours: nothing"},
		},
		"an import across": {
			files: files{"family/a/a.go": pkg("a", "example.org/ours/family/b")},
			want:  []string{"family/a/a.go: imports example.org/ours/family/b, but family/* may import of ours: low"},
		},
		"an import of a folder below an allowed one": {
			files: files{"high/high.go": pkg("high", "example.org/ours/low/inner")},
			want:  []string{"high/high.go: imports example.org/ours/low/inner, but high may import of ours: low, family/*"},
		},
		"an import of the root": {
			files: files{"low/low.go": pkg("low", "example.org/ours")},
			want:  []string{"low/low.go: imports example.org/ours, but low may import of ours: nothing"},
		},
		"another module whose path starts like ours": {
			files: files{"low/low.go": pkg("low", "example.org/ours2/high")},
		},
		"another module whose path starts like a heavy one": {
			files: files{"high/high.go": pkg("high", "heavy.org/dbx")},
		},
		"a folder whose name starts like a listed one": {
			files: files{"nested2/a.go": pkg("nested2")},
			want:  []string{"nested2: package is not listed: add a row to internal/arch/rules.go that says what it gives and what it may import"},
		},
		"a forbidden import behind a build constraint": {
			files: files{"low/low_plan9.go": "//go:build ignore\n\n" + pkg("low", "example.org/ours/high")},
			want:  []string{"low/low_plan9.go: imports example.org/ours/high, but low may import of ours: nothing"},
		},
		"a forbidden import in a nested module": {
			files: files{"nested/a.go": pkg("nested", "example.org/ours/high")},
			want:  []string{"nested/a.go: imports example.org/ours/high, but nested/... may import of ours: low, nested/..."},
		},
		"an unlisted package": {
			files: files{"stray/a.go": pkg("stray", "example.org/ours/low"), "stray/b.go": pkg("stray")},
			want:  []string{"stray: package is not listed: add a row to internal/arch/rules.go that says what it gives and what it may import"},
		},
		"an unlisted package below a listed one": {
			files: files{"low/inner/a.go": pkg("inner")},
			want:  []string{"low/inner: package is not listed: add a row to internal/arch/rules.go that says what it gives and what it may import"},
		},
		"an unlisted package with only tests": {
			files: files{"stray/a_test.go": pkg("stray")},
			want:  []string{"stray: package is not listed: add a row to internal/arch/rules.go that says what it gives and what it may import"},
		},
		"a package in the root folder": {
			files: files{"doc.go": pkg("ours")},
			want:  []string{".: package is not listed: add a row to internal/arch/rules.go that says what it gives and what it may import"},
		},
		"folders that the go command leaves out": {
			files: files{
				"low/testdata/a.go": pkg("a", "example.org/ours/high"),
				"_old/a.go":         pkg("a"),
				".cache/a.go":       pkg("a"),
				"node_modules/a.go": "this is no Go",
			},
		},
		"a test's own package and the suites": {
			files: files{
				"low/low_test.go":   pkg("low_test", "example.org/ours/low", "example.org/ours/suite"),
				"high/high_test.go": pkg("high_test", "example.org/ours/probe"),
			},
		},
		"a suite outside tests": {
			files: files{"low/low.go": pkg("low", "example.org/ours/suite")},
			want:  []string{"low/low.go: imports example.org/ours/suite, but low may import of ours: nothing"},
		},
		"a test that imports what is another's for tests": {
			files: files{"low/low_test.go": pkg("low", "example.org/ours/probe")},
			want:  []string{"low/low_test.go: imports example.org/ours/probe, but low may import of ours: suite"},
		},
		"a heavy dependency where it does not belong": {
			files: files{"high/high.go": pkg("high", "heavy.org/db/v2")},
			want:  []string{"high/high.go: imports heavy.org/db/v2, which only these may: low, nested/... (only low knows it)"},
		},
		"a heavy dependency in a test": {
			files: files{"high/high_test.go": pkg("high", "heavy.org/db")},
			want:  []string{"high/high_test.go: imports heavy.org/db, which only these may: low, nested/... (only low knows it)"},
		},
		"a dependency that nobody may have": {
			files: files{"nested/a.go": pkg("nested", "never.org/any/thing")},
			want:  []string{"nested/a.go: imports never.org/any/thing, which only these may: nothing (nobody needs it)"},
		},
		"a folder with an empty name": {
			files: files{"nested/util/a.go": pkg("strings2")},
			want:  []string{`nested/util: folder is named "util", which says nothing: name it for what it gives`},
		},
		"a package with an empty name": {
			files: files{"low/a.go": pkg("util"), "low/a_test.go": pkg("util_test")},
			want: []string{
				`low/a.go: package is named "util", which says nothing: name it for what it gives`,
				`low/a_test.go: package is named "util", which says nothing: name it for what it gives`,
			},
		},
		"a main that is long in one file": {
			files: files{"cmd/main/main.go": pkg("main") + "\n\n\n"},
			want:  []string{"cmd/main: has 4 lines of Go, at most 3 are allowed"},
		},
		"a main that is long in two files": {
			files: files{
				"cmd/main/main.go": pkg("main") + "\n", "cmd/main/more.go": pkg("main") + "\n",
				"cmd/main/main_test.go": pkg("main") + "\n\n\n\n",
			},
			want: []string{"cmd/main: has 4 lines of Go, at most 3 are allowed"},
		},
		"a main that is just short enough": {
			files: files{"cmd/main/main.go": pkg("main") + "\n\n"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Check(tt.files.fs(), tiny)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckWantsNestedModule(t *testing.T) {
	tree := files{"nested/a.go": pkg("nested")}.fs().(fstest.MapFS)
	delete(tree, "nested/go.mod")
	got, err := Check(tree, tiny)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"nested: belongs to the root module, but nested/... must have a go.mod of its own"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestCheckGoMod(t *testing.T) {
	const ours = "module example.org/ours\n"
	tests := map[string]struct {
		files files
		want  []string
	}{
		"what is allowed": {
			files: files{
				"go.mod": ours + "go 1.26\n\nrequire (\n\tk8s.io/api v0.37.2\n\tk8s.io/klog/v2 v2.1.0 // indirect\n)\nrequire k8s.io/client-go v0.37.2\n",
				"nested/go.mod": "module example.org/ours/nested\nrequire test.org/checker v1.0.0\n" +
					"require k8s.io/kubernetes v1.37.2\nreplace example.org/ours => ../\n",
			},
		},
		"replace in the root": {
			files: files{"go.mod": ours + "replace other.org/a => ../a // for now\n"},
			want:  []string{`go.mod: has "replace other.org/a => ../a": go install of the newest version would refuse it`},
		},
		"replace in the root, in a block": {
			files: files{"go.mod": ours + "replace (\n\tother.org/a v1.0.0 => other.org/b v1.0.1\n)\n"},
			want:  []string{`go.mod: has "replace other.org/a v1.0.0 => other.org/b v1.0.1": go install of the newest version would refuse it`},
		},
		"exclude in the root": {
			files: files{"go.mod": ours + "exclude other.org/a v1.0.0\n"},
			want:  []string{`go.mod: has "exclude other.org/a v1.0.0": go install of the newest version would refuse it`},
		},
		"a module for tests in the root": {
			files: files{"go.mod": ours + "require (\n\ttest.org/checker/v3 v3.0.0 // indirect\n)\n"},
			want:  []string{"go.mod: requires test.org/checker/v3, which belongs in a nested module (test, bench or tools)"},
		},
		"Kubernetes at another minor": {
			files: files{"nested/go.mod": "module example.org/ours/nested\nrequire k8s.io/api v0.36.1\n"},
			want:  []string{"nested/go.mod: requires k8s.io/api v0.36.1, but k8s.io modules are pinned to v0.37.x"},
		},
		"Kubernetes at two patches in one module": {
			files: files{"go.mod": ours + "require k8s.io/api v0.37.1\nrequire k8s.io/apimachinery v0.37.2 // indirect\n"},
			want:  []string{"go.mod: k8s.io modules must all have one version, but there are: k8s.io/api v0.37.1 in go.mod; k8s.io/apimachinery v0.37.2 in go.mod"},
		},
		"Kubernetes at two patches in two modules": {
			files: files{
				"go.mod":        ours + "require k8s.io/api v0.37.2\n",
				"nested/go.mod": "module example.org/ours/nested\nrequire k8s.io/api v0.37.1\n",
			},
			want: []string{"go.mod: k8s.io modules must all have one version, but there are: k8s.io/api v0.37.1 in nested/go.mod; k8s.io/api v0.37.2 in go.mod"},
		},
		"Kubernetes replaced by another minor": {
			files: files{"nested/go.mod": "module example.org/ours/nested\nreplace k8s.io/api => k8s.io/api v0.36.1\n"},
			want:  []string{"nested/go.mod: requires k8s.io/api v0.36.1, but k8s.io modules are pinned to v0.37.x"},
		},
		"a module whose path is not its folder": {
			files: files{"nested/go.mod": "module example.org/ours/other\n"},
			want:  []string{"nested/go.mod: module is example.org/ours/other, but its folder makes it example.org/ours/nested"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Check(tt.files.fs(), tiny)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckFailsOnWhatItCannotRead(t *testing.T) {
	tests := map[string]struct {
		files files
		want  string
	}{
		"a Go file that does not parse": {files{"low/low.go": "packige low\n"}, "low/low.go"},
		"a go.mod without a module":     {files{"nested/go.mod": "go 1.26\n"}, "nested/go.mod"},
		"a go.mod with half a require":  {files{"go.mod": "module example.org/ours\nrequire a.org/b\n"}, "line 2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Check(tt.files.fs(), tiny)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want one that names %q", err, tt.want)
			}
		})
	}
}

// The policy of this repository, on a few things that must never pass it.
func TestEvenkeelForbids(t *testing.T) {
	const ours = "github.com/even-keel/evenkeel/"
	tests := map[string]struct{ file, imported string }{
		"client sees the server":           {"client/a.go", ours + "server"},
		"informer sees storage":            {"informer/a.go", ours + "storage"},
		"server sees the client":           {"server/a.go", ours + "client"},
		"server sees an engine":            {"server/a.go", ours + "storage/embedded"},
		"rest sees the server":             {"server/rest/a.go", ours + "server"},
		"storage sees an engine":           {"storage/a.go", ours + "storage/etcd"},
		"engines see each other":           {"storage/etcd/a.go", ours + "storage/embedded"},
		"controller sees leader":           {"controller/a.go", ours + "leader"},
		"a controller sees manager":        {"controllers/deployment/a.go", ours + "manager"},
		"a controller ships the explorer":  {"controllers/deployment/a.go", ours + "explore"},
		"console sees the server":          {"console/a.go", ours + "server"},
		"examples see internals":           {"examples/a/a.go", ours + "internal/arch"},
		"cli sees a benchmark":             {"cli/a.go", ours + "bench"},
		"server on the generic server":     {"server/a.go", "k8s.io/apiserver/pkg/server/filters"},
		"server on the generic registry":   {"server/rest/a.go", "k8s.io/apiserver/pkg/registry"},
		"kinds on Kubernetes":              {"server/kinds/a.go", "k8s.io/kubernetes/pkg/apis/core"},
		"a storage test on Kubernetes":     {"test/storage/a.go", "k8s.io/kubernetes/pkg/apis/core"},
		"Pebble in the contract":           {"storage/a.go", "github.com/cockroachdb/pebble/v2"},
		"Pebble in the cli":                {"cli/a.go", "github.com/cockroachdb/pebble/v2/vfs"},
		"etcd in the embedded engine":      {"storage/embedded/a.go", "go.etcd.io/etcd/client/v3"},
		"etcd in the embedded engine test": {"storage/embedded/a_test.go", "go.etcd.io/etcd/client/v3"},
		"cobra in a library":               {"manager/a.go", "github.com/spf13/cobra"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{tt.file: {Data: []byte(pkg("a", tt.imported))}}
			found, err := Check(tree, Evenkeel)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range found {
				if strings.HasPrefix(line, tt.file+": imports "+tt.imported) {
					return
				}
			}
			t.Errorf("%s may import %s; reported was only %q", tt.file, tt.imported, found)
		})
	}
}
