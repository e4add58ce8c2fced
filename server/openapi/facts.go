package openapi

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed facts.txt
var factsText string

// facts are what the sources of the API's types say in comments. Keys are full
// type names, such as k8s.io/api/core/v1.PodSpec.
type facts struct {
	types map[string]string // the block of lines about a struct type, without "type NAME"
	enums map[string]string // the values of a string type, by commas
	docs  map[string]string // the descriptions of a type that has no SwaggerDoc, and of its fields
}

// loadFacts splits the text by type; the strings are parts of factsText.
var loadFacts = sync.OnceValue(func() facts {
	f := facts{types: map[string]string{}, enums: map[string]string{}, docs: map[string]string{}}
	for rest := factsText; rest != ""; {
		end := blockEnd(rest)
		block := rest[:end]
		rest = rest[end:]
		if line, ok := strings.CutPrefix(block, "enum "); ok {
			name, values, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			f.enums[name] = values
		} else if text, ok := strings.CutPrefix(block, "doc "); ok {
			name, rest, _ := strings.Cut(text, " ")
			f.docs[name] = rest
		} else if text, ok := strings.CutPrefix(block, "type "); ok {
			end := strings.IndexAny(text, " \n")
			f.types[text[:end]] = text[end:]
		}
	}
	return f
})

// blockEnd returns the length of the first line and the indented ones after it.
func blockEnd(text string) int {
	end := strings.IndexByte(text, '\n') + 1
	for end > 0 && end < len(text) && text[end] == '\t' {
		end += strings.IndexByte(text[end:], '\n') + 1
	}
	if end == 0 {
		return len(text)
	}
	return end
}

// typeFacts are the facts of one struct type.
type typeFacts struct {
	mapType string
	union   bool
	fields  map[string]fieldFacts
}

// fieldFacts are the facts of one field; optional and required are set where
// the JSON tag says otherwise.
type fieldFacts struct {
	optional, required bool
	discriminator      bool
	listType, mapType  string
	listKeys           []string
	defaultJSON        string
}

func (f facts) ofType(name string) typeFacts {
	text, ok := f.types[name]
	if !ok {
		return typeFacts{}
	}
	head, rest, _ := strings.Cut(text, "\n")
	found := typeFacts{fields: map[string]fieldFacts{}}
	for word := range strings.FieldsSeq(head) {
		if v, ok := strings.CutPrefix(word, "map="); ok {
			found.mapType = v
		}
		found.union = found.union || word == "union"
	}
	for line := range strings.Lines(rest) {
		name, words, _ := strings.Cut(strings.TrimSpace(line), " ")
		found.fields[name] = parseField(words)
	}
	return found
}

// parseField reads the words of a line; the default is the last and may hold
// spaces.
func parseField(words string) fieldFacts {
	var f fieldFacts
	words, f.defaultJSON, _ = strings.Cut(" "+words, " default=")
	for word := range strings.FieldsSeq(words) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "optional":
			f.optional = true
		case "required":
			f.required = true
		case "discriminator":
			f.discriminator = true
		case "list":
			f.listType = value
		case "map":
			f.mapType = value
		case "keys":
			f.listKeys = strings.Split(value, ",")
		}
	}
	return f
}

// ofDoc returns what a type's SwaggerDoc would: its description under "", and
// those of its fields.
func (f facts) ofDoc(name string) map[string]string {
	text, ok := f.docs[name]
	if !ok {
		return nil
	}
	doc := map[string]string{}
	of, rest, _ := strings.Cut(text, "\n")
	doc[""] = manyLines(of)
	for line := range strings.Lines(rest) {
		name, of, _ := strings.Cut(strings.TrimSpace(line), " ")
		doc[name] = manyLines(of)
	}
	return doc
}

func manyLines(text string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(text)
}

// ofEnum returns the values of a string type, or nil.
func (f facts) ofEnum(name string) []string {
	values, ok := f.enums[name]
	if !ok {
		return nil
	}
	return strings.Split(values, ",")
}
