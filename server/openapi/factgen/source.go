package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// source is what the files of one package declare.
type source struct {
	types  []typeDecl
	consts map[string]string   // string constants by name
	values map[string][]string // string constants by the name of their type
	loans  []loan
}

// loan is a constant whose value is a constant of another package.
type loan struct{ name, of, path, from string }

type typeDecl struct {
	name string
	doc  markers
	text string // of the comment
	spec ast.Expr
}

// markers are the lines "+name=value" of a comment; a name may come repeatedly.
type markers map[string][]string

func (m markers) has(name string) bool { return m[name] != nil }

func (m markers) first(names ...string) string {
	for _, name := range names {
		if len(m[name]) > 0 {
			return m[name][0]
		}
	}
	return ""
}

func markersOf(groups ...*ast.CommentGroup) markers {
	found := markers{}
	for _, group := range groups {
		if group == nil {
			continue
		}
		for _, comment := range group.List {
			line := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
			if rest, ok := strings.CutPrefix(line, "+"); ok {
				name, value, _ := strings.Cut(rest, "=")
				found[name] = append(found[name], value)
			}
		}
	}
	return found
}

func readSource(dir string) (*source, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	s := &source{consts: map[string]string{}, values: map[string][]string{}}
	for _, name := range names {
		if base := filepath.Base(name); strings.HasSuffix(base, "_test.go") || strings.Contains(base, "generated") {
			continue
		}
		if err := s.readFile(name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *source) readFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	imports := importsOf(file)
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				s.addType(gen, spec)
			case *ast.ValueSpec:
				s.addConsts(gen, spec, imports)
			}
		}
	}
	return nil
}

func (s *source) addType(gen *ast.GenDecl, spec *ast.TypeSpec) {
	comments := []*ast.CommentGroup{spec.Doc}
	if len(gen.Specs) == 1 {
		comments = append(comments, gen.Doc)
	}
	s.types = append(s.types, typeDecl{
		name: spec.Name.Name, doc: markersOf(comments...), text: textOf(comments...), spec: spec.Type,
	})
}

// importsOf returns the imports of a file by the names that it uses for them.
func importsOf(file *ast.File) map[string]string {
	imports := map[string]string{}
	for _, i := range file.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil && i.Name != nil {
			imports[i.Name.Name] = p
		} else if err == nil {
			imports[path.Base(p)] = p
		}
	}
	return imports
}

// addConsts notes string constants, which are written T = "x" or = T("x"), where
// "x" may stand in another package.
func (s *source) addConsts(gen *ast.GenDecl, spec *ast.ValueSpec, imports map[string]string) {
	if gen.Tok != token.CONST {
		return
	}
	for i, value := range spec.Values {
		of := spec.Type
		if call, ok := value.(*ast.CallExpr); ok && len(call.Args) == 1 {
			of, value = call.Fun, call.Args[0]
		}
		name, typeName := spec.Names[i].Name, identName(of)
		switch value := value.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(value.Value); err == nil && value.Kind == token.STRING {
				s.addConst(name, typeName, text)
			}
		case *ast.SelectorExpr:
			s.loans = append(s.loans, loan{name, typeName, imports[identName(value.X)], value.Sel.Name})
		}
	}
}

func (s *source) addConst(name, typeName, text string) {
	s.consts[name] = text
	if !slices.Contains(s.values[typeName], text) {
		s.values[typeName] = append(s.values[typeName], text)
	}
}

// settle gives the constants of a package that stand for those of others their
// values.
func (s *source) settle(sources map[string]*source) {
	for _, l := range s.loans {
		if from := sources[l.path]; from != nil {
			if text, ok := from.consts[l.from]; ok {
				s.addConst(l.name, l.of, text)
			}
		}
	}
}

func identName(e ast.Expr) string {
	if ident, ok := e.(*ast.Ident); ok {
		return ident.Name
	}
	return ""
}

// field is one field of a struct as JSON sees it.
type field struct {
	name      string
	omitEmpty bool
	doc       markers
	text      string
}

// fields returns the named fields of a struct; embedded ones are facts of their
// own types.
func fields(spec *ast.StructType) ([]field, error) {
	var found []field
	for _, f := range spec.Fields.List {
		if f.Tag == nil {
			continue
		}
		text, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			return nil, fmt.Errorf("tag %s: %w", f.Tag.Value, err)
		}
		tag := strings.Split(reflect.StructTag(text).Get("json"), ",")
		if tag[0] == "" || tag[0] == "-" {
			continue
		}
		found = append(found, field{
			name:      tag[0],
			omitEmpty: slices.Contains(tag[1:], "omitempty"),
			doc:       markersOf(f.Doc),
			text:      textOf(f.Doc),
		})
	}
	return found, nil
}
