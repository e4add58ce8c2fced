package arch

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// tree is what the checks need to know of a source tree.
type tree struct {
	files   []goFile
	modules []module
}

// goFile is one .go file, whatever its build constraints.
type goFile struct {
	path    string
	pkg     string
	imports []string
	lines   int
}

func (f goFile) folder() string { return path.Dir(f.path) }
func (f goFile) isTest() bool   { return strings.HasSuffix(f.path, "_test.go") }

// readTree reads all Go files and go.mod files but those that the go command
// leaves out too: testdata, vendor, and folders that start with a dot or an
// underscore.
func readTree(fsys fs.FS) (tree, error) {
	var t tree
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if skipped(name) {
				return fs.SkipDir
			}
			return nil
		case d.Name() == "go.mod":
			return t.addModule(fsys, name)
		case strings.HasSuffix(name, ".go"):
			return t.addFile(fsys, name)
		}
		return nil
	})
	return t, err
}

func skipped(folder string) bool {
	base := path.Base(folder)
	switch base {
	case ".":
		return false
	case "testdata", "vendor", "node_modules":
		return true
	}
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

func (t *tree) addFile(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
	if err != nil {
		return fmt.Errorf("parse imports: %w", err)
	}
	f := goFile{path: name, pkg: parsed.Name.Name, lines: bytes.Count(src, []byte("\n"))}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("parse imports of %s: %w", name, err)
		}
		f.imports = append(f.imports, imported)
	}
	t.files = append(t.files, f)
	return nil
}

// moduleOf returns the folder of the go.mod that a folder belongs to.
func (t *tree) moduleOf(folder string) string {
	nearest := "."
	for _, m := range t.modules {
		if m.folder != "." && below(m.folder, folder) && len(m.folder) > len(nearest) {
			nearest = m.folder
		}
	}
	return nearest
}
