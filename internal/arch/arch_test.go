package arch

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// root is the repository, as seen from this folder.
const root = "../.."

func TestRepositoryKeepsItsArchitecture(t *testing.T) {
	found, err := Check(os.DirFS(root), Evenkeel)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range found {
		t.Error(line)
	}
}

// A check of a tree that is not there finds nothing wrong with it.
func TestRepositoryIsReadWhole(t *testing.T) {
	got, err := readTree(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"cli", "cmd/evenkeel", "internal/arch", "storage"} {
		if !slices.ContainsFunc(got.files, func(f goFile) bool { return f.folder() == folder }) {
			t.Errorf("no Go file of %s was read", folder)
		}
	}
	for _, folder := range []string{".", "tools"} {
		if !slices.ContainsFunc(got.modules, func(m module) bool { return m.folder == folder }) {
			t.Errorf("%s/go.mod was not read", folder)
		}
	}
	if !slices.ContainsFunc(got.files, func(f goFile) bool { return slices.Contains(f.imports, "go/parser") }) {
		t.Error("no import was read, not even tree.go's of go/parser")
	}
}

func TestRulesAreWellFormed(t *testing.T) {
	var folders []string
	for _, r := range Evenkeel.Rules {
		if slices.Contains(folders, r.Folder) {
			t.Errorf("%s has two rows", r.Folder)
		}
		if r.Gives == "" {
			t.Errorf("the row of %s does not say what it gives", r.Folder)
		}
		if first, _ := Evenkeel.rule(example(r.Folder)); first.Folder != r.Folder {
			t.Errorf("the row of %s is hidden by that of %s, which comes first", r.Folder, first.Folder)
		}
		folders = append(folders, r.Folder)
	}
	for _, r := range Evenkeel.Rules {
		for _, p := range slices.Concat(r.May, r.Tests) {
			if !standsForRow(p) {
				t.Errorf("%s may import %s, which has no row", r.Folder, p)
			}
		}
	}
	for _, l := range Evenkeel.Limits {
		for _, p := range l.Only {
			if !standsForRow(p) {
				t.Errorf("%s may import %s, but has no row", p, l.Path)
			}
		}
	}
	for _, p := range Evenkeel.Tests {
		if !standsForRow(p) {
			t.Errorf("tests may import %s, which has no row", p)
		}
	}
}

// standsForRow reports whether a pattern is a row's or fits a row's folder.
func standsForRow(pattern string) bool {
	return slices.ContainsFunc(Evenkeel.Rules, func(r Rule) bool {
		return r.Folder == pattern || matches(pattern, r.Folder)
	})
}

// example returns a folder that fits a pattern.
func example(pattern string) string {
	return strings.ReplaceAll(strings.TrimSuffix(pattern, "/..."), "*", "x")
}

func TestHalvesMeetOnlyWhereTheyMay(t *testing.T) {
	may := []string{"evenkeeltest", "cli", "cmd/evenkeel", "examples/...", "test/compat/...", "test/...", "bench/..."}
	client := slices.Concat(clientHalf, controllers)
	for _, r := range Evenkeel.Rules {
		reaches := func(half []string) bool {
			return slices.ContainsFunc(half, func(p string) bool { return slices.Contains(r.May, p) || r.Folder == p })
		}
		if both := reaches(client) && reaches(serverHalf); both != slices.Contains(may, r.Folder) {
			t.Errorf("%s sees both halves: %v, want %v", r.Folder, both, !both)
		}
	}
}

// A library that imports evenkeeltest links a server into every program.
func TestOnlyTestsOfTheHalvesImportTheTestServer(t *testing.T) {
	for _, r := range Evenkeel.Rules {
		if slices.Contains(slices.Concat(bothHalves, tooling), r.Folder) && matchesAny(r.May, "evenkeeltest") {
			t.Errorf("%s may import evenkeeltest outside of its tests", r.Folder)
		}
	}
}

func TestTableForbidsCycles(t *testing.T) {
	var visit func(folder string, way []string)
	visit = func(folder string, way []string) {
		if slices.Contains(way, folder) {
			t.Errorf("the table lets packages import each other: %s", strings.Join(append(way, folder), " -> "))
			return
		}
		rule, ok := Evenkeel.rule(folder)
		if !ok {
			return
		}
		for _, next := range rule.May {
			if next != "server/*" && next != rule.Folder {
				visit(example(next), append(way, folder))
			}
		}
	}
	for _, folder := range without(public, "cli", "server/*") {
		visit(example(folder), nil)
	}
}
