package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// blocks returns one block of lines for each type that has facts. The form:
//
//	type k8s.io/api/core/v1.Toleration [map=atomic] [union]
//		field [optional|required] [list=map] [keys=a,b] [map=atomic] [discriminator] [default=JSON]
//	enum k8s.io/api/core/v1.PullPolicy Always,IfNotPresent,Never
//	doc k8s.io/api/core/v1.Toleration text of the type
//		field text of the field, where \n is a new line
//
// Only what differs from the JSON tag is said of optional and required.
func (s *source) blocks(path string) ([]string, error) {
	var blocks []string
	for _, t := range s.types {
		block, err := s.block(path+"."+t.name, t)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", path, t.name, err)
		}
		if block != "" {
			blocks = append(blocks, block)
		}
	}
	return blocks, nil
}

func (s *source) block(name string, t typeDecl) (string, error) {
	switch spec := t.spec.(type) {
	case *ast.StructType:
		return s.structBlock(name, t, spec)
	case *ast.Ident:
		if spec.Name == "string" && t.doc.has("enum") {
			return enumBlock(name, s.values[t.name])
		}
	}
	return "", nil
}

func enumBlock(name string, values []string) (string, error) {
	if slices.ContainsFunc(values, func(v string) bool { return strings.ContainsAny(v, ",\n") }) {
		return "", fmt.Errorf("enum value with a comma or a newline: %q", values)
	}
	slices.Sort(values)
	return "enum " + name + " " + strings.Join(values, ",") + "\n", nil
}

func (s *source) structBlock(name string, t typeDecl, spec *ast.StructType) (string, error) {
	head := words(value("map", t.doc.first("structType", "mapType")), word("union", t.doc.has("union")))
	all, err := fields(spec)
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	for _, f := range all {
		line, err := s.fieldLine(f)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.name, err)
		}
		if line != "" {
			lines.WriteString("\t" + f.name + line + "\n")
		}
	}
	if head == "" && lines.Len() == 0 {
		return "", nil
	}
	return "type " + name + head + "\n" + lines.String(), nil
}

func (s *source) fieldLine(f field) (string, error) {
	defaulted, err := s.defaultOf(f.doc.first("default"))
	if err != nil {
		return "", err
	}
	required := f.doc.has("required")
	optional := !required && f.doc.has("optional")
	return words(
		word("optional", optional && !f.omitEmpty),
		word("required", required && f.omitEmpty),
		value("list", f.doc.first("listType")),
		value("keys", strings.Join(f.doc["listMapKey"], ",")),
		value("map", f.doc.first("mapType", "structType")),
		word("discriminator", f.doc.has("unionDiscriminator")),
		value("default", defaulted),
	), nil
}

// defaultOf returns a default as JSON; ref(Name) is the constant of that name.
func (s *source) defaultOf(marker string) (string, error) {
	if marker == "" {
		return "", nil
	}
	if name, ok := strings.CutPrefix(marker, "ref("); ok {
		text, known := s.consts[strings.TrimSuffix(name, ")")]
		if !known {
			return "", fmt.Errorf("unknown constant in %s", marker)
		}
		quoted, err := json.Marshal(text)
		return string(quoted), err
	}
	if !json.Valid([]byte(marker)) {
		return "", fmt.Errorf("default is not JSON: %s", marker)
	}
	return marker, nil
}

func words(parts ...string) string { return strings.Join(parts, "") }

func word(name string, is bool) string {
	if !is {
		return ""
	}
	return " " + name
}

func value(name, v string) string {
	if v == "" {
		return ""
	}
	return " " + name + "=" + v
}
