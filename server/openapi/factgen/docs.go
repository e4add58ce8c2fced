package main

import (
	"go/ast"
	"strings"
)

// textOf returns the beginning of a comment, without markers: the first
// paragraph, and those after it that it announces with a colon. Lines that
// belong together are one, list items have their own.
func textOf(groups ...*ast.CommentGroup) string {
	var paragraphs []string
	for _, group := range groups {
		if group != nil {
			paragraphs = append(paragraphs, paragraphsOf(group)...)
		}
	}
	if len(paragraphs) == 0 {
		return ""
	}
	last := 0
	for last+1 < len(paragraphs) && strings.HasSuffix(paragraphs[last], ":") {
		last++
	}
	return strings.Join(paragraphs[:last+1], "\n\n")
}

func paragraphsOf(group *ast.CommentGroup) []string {
	paragraphs := []string{""}
	for _, comment := range group.List {
		line := strings.TrimRight(strings.TrimPrefix(strings.TrimPrefix(comment.Text, "//"), " "), " ")
		current := &paragraphs[len(paragraphs)-1]
		switch {
		case line == "" && *current != "":
			paragraphs = append(paragraphs, "")
		case line == "" || strings.HasPrefix(line, "+"):
		case *current == "":
			*current = line
		case isItem(line):
			*current += "\n" + line
		default:
			*current += " " + strings.TrimSpace(line)
		}
	}
	if paragraphs[len(paragraphs)-1] == "" {
		paragraphs = paragraphs[:len(paragraphs)-1]
	}
	return paragraphs
}

// isItem tells whether a line starts an item of a list: "- x", "* x", "1. x",
// "1) x".
func isItem(line string) bool {
	line = strings.TrimSpace(line)
	mark, _, ok := strings.Cut(line, " ")
	number := strings.TrimRight(mark, ".)")
	return ok && (mark == "-" || mark == "*" || number != mark && strings.Trim(number, "0123456789") == "")
}

// docBlocks returns one block of lines for each struct type that says something
// of itself or its fields, but for what only webhooks see.
func (s *source) docBlocks(path string) []string {
	var blocks []string
	for _, t := range s.types {
		spec, ok := t.spec.(*ast.StructType)
		if !ok || strings.HasPrefix(t.name, "Conversion") {
			continue
		}
		all, err := fields(spec)
		if err != nil {
			continue // blocks has told
		}
		var lines strings.Builder
		for _, f := range all {
			if f.text != "" {
				lines.WriteString("\t" + f.name + " " + oneLine(f.text) + "\n")
			}
		}
		if t.text != "" || lines.Len() > 0 {
			blocks = append(blocks, "doc "+path+"."+t.name+" "+oneLine(t.text)+"\n"+lines.String())
		}
	}
	return blocks
}

func oneLine(text string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(text)
}
