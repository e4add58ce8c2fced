package patch

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

//go:generate go run gen.go

// schemaText has a line for each type and kind, sorted by its first word. A
// kind ("apps/v1/Deployment") names its type; a type has an atom:
//
//	atom  = part { "|" part }
//	part  = "$" first letter of a scalar
//	      | "[" relation keys ":" ref "]"
//	      | "{" relation [ref] { " " field ":" ref [ "=" length ":" JSON ] } "}"
//	ref   = ( name of a type | atom | "" ) [ "!" relation ]
//
// The text stays in the binary's read-only part: names are slices of it.
//
//go:embed schema.txt
var schemaText string

// catalog decodes types out of schemaText, each once, when a kind first needs
// it. Decoded types are shared by all kinds and never change.
type catalog struct {
	kinds sync.Map // schema.GroupVersionKind -> *kind; nil: not in the text

	mu    sync.Mutex
	types map[string]*node
}

// kind is the type of a kind, over a schema of just the types that it reaches.
type kind struct {
	typed.ParseableType
	shapes *shapes
}

// node is a decoded type and the names of those it refers to.
type node struct {
	smd.TypeDef
	uses []string
}

// kind returns a kind, or nil if the text does not have it.
func (c *catalog) kind(gvk schema.GroupVersionKind) *kind {
	if k, ok := c.kinds.Load(gvk); ok {
		return k.(*kind)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k, _ := c.kinds.LoadOrStore(gvk, c.decodeLocked(gvk))
	return k.(*kind)
}

func (c *catalog) decodeLocked(gvk schema.GroupVersionKind) *kind {
	name, ok := lookup(gvk.GroupVersion().String() + "/" + gvk.Kind)
	if !ok {
		return nil
	}
	if c.types == nil {
		c.types = map[string]*node{}
	}
	s := &smd.Schema{Types: c.closureLocked(name)}
	ref := smd.TypeRef{NamedType: &c.types[name].Name}
	return &kind{typed.ParseableType{Schema: s, TypeRef: ref}, newShapes(s)}
}

// closureLocked returns a type and all that it refers to, however far.
func (c *catalog) closureLocked(name string) []smd.TypeDef {
	var defs []smd.TypeDef
	seen := map[string]bool{name: true}
	for todo := []string{name}; len(todo) > 0; {
		n := c.nodeLocked(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		defs = append(defs, n.TypeDef)
		for _, use := range n.uses {
			if !seen[use] {
				seen[use] = true
				todo = append(todo, use)
			}
		}
	}
	return defs
}

func (c *catalog) nodeLocked(name string) *node {
	if n := c.types[name]; n != nil && n.uses != nil {
		return n
	}
	text, ok := lookup(name)
	if !ok {
		panic("patch: schema.txt has no type " + name)
	}
	n := c.namedLocked(name)
	r := &reader{text: text, catalog: c, uses: []string{}}
	n.Atom = r.atom()
	n.uses = r.uses
	return n
}

// namedLocked returns the node of a name, which may not be decoded yet: all
// references to a type share one copy of its name.
func (c *catalog) namedLocked(name string) *node {
	n := c.types[name]
	if n == nil {
		n = &node{TypeDef: smd.TypeDef{Name: name}}
		c.types[name] = n
	}
	return n
}

// lookup finds the line with the given first word and returns the rest.
func lookup(word string) (string, bool) {
	line := func(at int) (start, end int) {
		start = strings.LastIndexByte(schemaText[:at], '\n') + 1
		return start, at + strings.IndexByte(schemaText[at:], '\n')
	}
	// The first offset whose line does not come before the word.
	at := sort.Search(len(schemaText), func(i int) bool {
		start, end := line(i)
		first, _, _ := strings.Cut(schemaText[start:end], " ")
		return first >= word
	})
	if at == len(schemaText) {
		return "", false
	}
	start, end := line(at)
	first, rest, _ := strings.Cut(schemaText[start:end], " ")
	return rest, first == word
}

// reader parses one line of the text. The text is ours and tested whole, so
// that whatever it cannot read is a bug and panics.
type reader struct {
	text    string
	at      int
	uses    []string
	catalog *catalog
}

var (
	scalars = map[byte]*smd.Scalar{}
	related = map[byte]smd.ElementRelationship{
		'-': "", 'a': smd.Atomic, 'c': smd.Associative, 's': smd.Separable,
	}
)

func init() {
	for _, s := range []smd.Scalar{smd.Numeric, smd.String, smd.Boolean, smd.Untyped} {
		scalars[s[0]] = &s
	}
}

func (r *reader) atom() smd.Atom {
	var a smd.Atom
	for {
		switch r.next() {
		case '$':
			a.Scalar = scalars[r.next()]
		case '[':
			a.List = r.list()
		case '{':
			a.Map = r.mapping()
		default:
			panic(fmt.Sprintf("patch: schema.txt: column %d of %q", r.at, r.text))
		}
		if r.peek() != '|' {
			return a
		}
		r.at++
	}
}

func (r *reader) list() *smd.List {
	l := &smd.List{ElementRelationship: related[r.next()]}
	if keys := r.until(":"); keys != "" {
		l.Keys = strings.Split(keys, ",")
	}
	r.at++
	l.ElementType = r.ref()
	r.at++ // "]"
	return l
}

func (r *reader) mapping() *smd.Map {
	m := &smd.Map{ElementRelationship: related[r.next()]}
	m.ElementType = r.ref()
	for r.next() == ' ' {
		f := smd.StructField{Name: r.until(":")}
		r.at++
		f.Type = r.ref()
		f.Default = r.defaulted()
		m.Fields = append(m.Fields, f)
	}
	return m
}

func (r *reader) ref() smd.TypeRef {
	var ref smd.TypeRef
	switch r.peek() {
	case '$', '[', '{':
		ref.Inlined = r.atom()
	default:
		if name := r.until(" ]}!="); name != "" {
			ref.NamedType = &r.catalog.namedLocked(name).Name
			r.uses = append(r.uses, name)
		}
	}
	if r.peek() == '!' {
		r.at++
		relation := related[r.next()]
		ref.ElementRelationship = &relation
	}
	return ref
}

func (r *reader) defaulted() any {
	if r.peek() != '=' {
		return nil
	}
	r.at++
	size, _ := strconv.Atoi(r.until(":"))
	r.at++
	text := r.text[r.at : r.at+size]
	r.at += size
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic("patch: schema.txt: " + err.Error())
	}
	return v
}

func (r *reader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *reader) next() byte {
	b := r.peek()
	r.at++
	return b
}

// until returns the text before the first of some bytes, which is next.
func (r *reader) until(stops string) string {
	rest := r.text[r.at:]
	n := strings.IndexAny(rest, stops)
	if n < 0 {
		n = len(rest)
	}
	r.at += n
	return rest[:n]
}
