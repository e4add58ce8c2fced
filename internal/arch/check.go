package arch

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Check returns what in a tree goes against a policy, a line each, sorted. The
// error is of reading or parsing the tree.
func Check(fsys fs.FS, p Policy) ([]string, error) {
	t, err := readTree(fsys)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, f := range t.files {
		found = append(found, p.checkImports(f)...)
	}
	found = append(found, p.checkFolders(t)...)
	found = append(found, p.checkModules(t)...)
	found = append(found, p.checkKubernetes(t)...)
	slices.Sort(found)
	return slices.Compact(found), nil
}

func (p Policy) rule(folder string) (Rule, bool) {
	i := slices.IndexFunc(p.Rules, func(r Rule) bool { return matches(r.Folder, folder) })
	if i < 0 {
		return Rule{}, false
	}
	return p.Rules[i], true
}

func (p Policy) checkImports(f goFile) []string {
	rule, listed := p.rule(f.folder())
	var found []string
	for _, imported := range f.imports {
		ours, isOurs := p.folderOf(imported)
		switch {
		case isOurs && !listed, ours == f.folder():
			// An unlisted package is reported as such, once.
		case isOurs:
			if may := p.allowed(rule, f); !matchesAny(may, ours) {
				found = append(found, fmt.Sprintf("%s: imports %s, but %s may import of ours: %s",
					f.path, imported, rule.Folder, orNothing(may)))
			}
		default:
			found = append(found, p.checkLimits(f, imported)...)
		}
	}
	return found
}

// folderOf returns the folder of a package of ours.
func (p Policy) folderOf(imported string) (string, bool) {
	if imported == p.Module {
		return ".", true
	}
	return strings.CutPrefix(imported, p.Module+"/")
}

func (p Policy) allowed(rule Rule, f goFile) []string {
	if !f.isTest() {
		return rule.May
	}
	may := slices.Clone(rule.May)
	for _, pattern := range slices.Concat(rule.Tests, p.Tests) {
		if !slices.Contains(may, pattern) {
			may = append(may, pattern)
		}
	}
	return may
}

func (p Policy) checkLimits(f goFile, imported string) []string {
	var found []string
	for _, l := range p.Limits {
		if below(l.Path, imported) && !matchesAny(l.Only, f.folder()) {
			found = append(found, fmt.Sprintf("%s: imports %s, which only these may: %s (%s)",
				f.path, imported, orNothing(l.Only), l.Why))
		}
	}
	return found
}

func (p Policy) checkFolders(t tree) []string {
	var found []string
	lines := map[string]int{}
	for _, f := range t.files {
		found = append(found, p.checkFolder(t, f.folder())...)
		if name := strings.TrimSuffix(f.pkg, "_test"); slices.Contains(p.BadNames, name) {
			found = append(found, fmt.Sprintf("%s: package is named %q, which says nothing: name it for what it gives", f.path, name))
		}
		if !f.isTest() {
			lines[f.folder()] += f.lines
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(p.MaxLines)) {
		if most := p.MaxLines[folder]; lines[folder] > most {
			found = append(found, fmt.Sprintf("%s: has %d lines of Go, at most %d are allowed", folder, lines[folder], most))
		}
	}
	return found
}

func (p Policy) checkFolder(t tree, folder string) []string {
	var found []string
	for _, element := range strings.Split(folder, "/") {
		if slices.Contains(p.BadNames, element) {
			found = append(found, fmt.Sprintf("%s: folder is named %q, which says nothing: name it for what it gives", folder, element))
		}
	}
	rule, listed := p.rule(folder)
	if !listed {
		return append(found, fmt.Sprintf("%s: package is not listed: add a row to internal/arch/rules.go that says what it gives and what it may import", folder))
	}
	if rule.OwnModule && t.moduleOf(folder) == "." {
		found = append(found, fmt.Sprintf("%s: belongs to the root module, but %s must have a go.mod of its own", folder, rule.Folder))
	}
	return found
}

func (p Policy) checkModules(t tree) []string {
	var found []string
	for _, m := range t.modules {
		if want := path.Join(p.Module, m.folder); m.path != want {
			found = append(found, fmt.Sprintf("%s: module is %s, but its folder makes it %s", m.file(), m.path, want))
		}
		if m.folder == "." {
			found = append(found, p.checkRootModule(m)...)
		}
	}
	return found
}

func (p Policy) checkRootModule(m module) []string {
	var found []string
	for _, pin := range m.pins {
		found = append(found, fmt.Sprintf("%s: has %q: go install of the newest version would refuse it", m.file(), pin))
	}
	for _, r := range m.requires {
		if belowAny(p.NotInRoot, r.path) {
			found = append(found, fmt.Sprintf("%s: requires %s, which belongs in a nested module (test, bench or tools)", m.file(), r.path))
		}
	}
	return found
}

// notStaging are the modules under k8s.io that have version numbers of their
// own. All others are cut from one Kubernetes release and fit only together.
var notStaging = []string{
	"k8s.io/gengo",
	"k8s.io/klog",
	"k8s.io/kube-openapi",
	"k8s.io/kubernetes",
	"k8s.io/system-validators",
	"k8s.io/utils",
}

func (p Policy) checkKubernetes(t tree) []string {
	var found []string
	first := map[string]string{} // version to where it was first seen
	for _, m := range t.modules {
		if slices.Contains(p.Peers, m.folder) {
			continue
		}
		for _, r := range m.requires {
			if !below("k8s.io", r.path) || belowAny(notStaging, r.path) {
				continue
			}
			if !strings.HasPrefix(r.version, p.KubernetesMinor) {
				found = append(found, fmt.Sprintf("%s: requires %s %s, but k8s.io modules are pinned to %sx", m.file(), r.path, r.version, p.KubernetesMinor))
			}
			if _, seen := first[r.version]; !seen {
				first[r.version] = fmt.Sprintf("%s %s in %s", r.path, r.version, m.file())
			}
		}
	}
	if len(first) > 1 {
		where := slices.Sorted(maps.Values(first))
		found = append(found, "go.mod: k8s.io modules must all have one version, but there are: "+strings.Join(where, "; "))
	}
	return found
}

func orNothing(patterns []string) string {
	if len(patterns) == 0 {
		return "nothing"
	}
	return strings.Join(patterns, ", ")
}
