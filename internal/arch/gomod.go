package arch

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// module is what the checks need to know of a go.mod. golang.org/x/mod would
// parse it too, but the root module requires nothing that only tests need.
type module struct {
	folder   string
	path     string
	requires []requirement
	// pins are the directives that keep `go install ...@latest` from working
	// when they stand in the root: replace and exclude, as written.
	pins []string
}

type requirement struct {
	path, version string
}

func (m module) file() string { return path.Join(m.folder, "go.mod") }

func (t *tree) addModule(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	m, err := parseModule(string(src))
	if err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	m.folder = path.Dir(name)
	t.modules = append(t.modules, m)
	return nil
}

// parseModule reads the directives of a go.mod, alone or in blocks.
func parseModule(src string) (module, error) {
	var m module
	block := ""
	for n, line := range strings.Split(src, "\n") {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case block != "" && words[0] == ")":
			block = ""
			continue
		case block != "":
			words = append([]string{block}, words...)
		case len(words) == 2 && words[1] == "(":
			block = words[0]
			continue
		}
		if err := m.add(words); err != nil {
			return module{}, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	if m.path == "" {
		return module{}, fmt.Errorf("no module directive")
	}
	return m, nil
}

func (m *module) add(words []string) error {
	for i, w := range words {
		words[i] = strings.Trim(w, "\"`")
	}
	switch words[0] {
	case "module":
		if len(words) != 2 {
			return fmt.Errorf("module wants one path")
		}
		m.path = words[1]
	case "require":
		if len(words) != 3 {
			return fmt.Errorf("require wants a path and a version")
		}
		m.requires = append(m.requires, requirement{words[1], words[2]})
	case "replace":
		m.pins = append(m.pins, strings.Join(words, " "))
		m.addReplacement(words)
	case "exclude":
		m.pins = append(m.pins, strings.Join(words, " "))
	}
	return nil
}

// addReplacement counts `replace a => b v1.2.3` as a requirement of b at that
// version; a folder on the right has none.
func (m *module) addReplacement(words []string) {
	if n := len(words); n >= 4 && words[n-3] == "=>" {
		m.requires = append(m.requires, requirement{words[n-2], words[n-1]})
	}
}
