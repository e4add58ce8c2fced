package client

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// parseObject reads a JSON object as unstructured objects have it: whole numbers
// as int64, others as float64.
func parseObject(data []byte) (map[string]any, error) {
	v, err := parseValue(data)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: not a JSON object", ErrMalformed)
	}
	return m, nil
}

func parseValue(data []byte) (any, error) {
	p := parsers.Get().(*parser)
	defer parsers.Put(p)
	p.data, p.at, p.depth = data, 0, 0
	v, err := p.value(0)
	if err == nil && p.peek() != 0 {
		err = p.fail("more after the end")
	}
	p.data = nil
	return v, err
}

// maxDepth is how deep values may be nested; encoding/json has the same.
const maxDepth = 10000

// parser reads JSON: into maps, slices, strings, numbers and booleans, or by plans.
type parser struct {
	data  []byte
	at    int
	depth int // of plans
	// strings are short ones that were seen, found by a hash: objects repeat each
	// other, and themselves.
	strings [512]string
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// maxInterned is the length of the longest string that is kept for the next object.
const maxInterned = 40

// intern makes a string, or finds one.
func (p *parser) intern(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > maxInterned {
		return string(b)
	}
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	known := &p.strings[(h^h>>16)%uint32(len(p.strings))]
	if *known != string(b) {
		*known = string(b)
	}
	return *known
}

func (p *parser) fail(what string) error {
	return fmt.Errorf("%w: JSON: %s at byte %d", ErrMalformed, what, p.at)
}

// peek skips white space and returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	for ; p.at < len(p.data); p.at++ {
		switch c := p.data[p.at]; c {
		case ' ', '\t', '\n', '\r':
		case 0:
			return 1 // no byte of JSON, and not the end
		default:
			return c
		}
	}
	return 0
}

func (p *parser) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, p.fail("nested too deeply")
	}
	switch c := p.peek(); c {
	case '{':
		return p.object(depth + 1)
	case '[':
		return p.array(depth + 1)
	case '"':
		return p.text()
	case 't':
		return true, p.literal("true")
	case 'f':
		return false, p.literal("false")
	case 'n':
		return nil, p.literal("null")
	default:
		return p.number()
	}
}

func (p *parser) literal(want string) error {
	if len(p.data)-p.at < len(want) || string(p.data[p.at:p.at+len(want)]) != want {
		return p.fail("unknown word")
	}
	p.at += len(want)
	return nil
}

func (p *parser) object(depth int) (any, error) {
	p.at++
	m := map[string]any{}
	if p.peek() == '}' {
		p.at++
		return m, nil
	}
	for {
		if p.peek() != '"' {
			return nil, p.fail("no name of a field")
		}
		name, err := p.text()
		if err != nil {
			return nil, err
		}
		if p.peek() != ':' {
			return nil, p.fail("no colon")
		}
		p.at++
		if m[name], err = p.value(depth); err != nil {
			return nil, err
		}
		if done, err := p.next('}'); done || err != nil {
			return m, err
		}
	}
}

func (p *parser) array(depth int) (any, error) {
	p.at++
	a := []any{}
	if p.peek() == ']' {
		p.at++
		return a, nil
	}
	for {
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		a = append(a, v)
		if done, err := p.next(']'); done || err != nil {
			return a, err
		}
	}
}

// next reads what follows an element: a comma, or the end.
func (p *parser) next(end byte) (done bool, err error) {
	c := p.peek()
	if c != ',' && c != end {
		return false, p.fail("no comma")
	}
	p.at++
	return c == end, nil
}

// text reads a string.
func (p *parser) text() (string, error) {
	raw, plain, err := p.quoted()
	if err != nil {
		return "", err
	}
	if plain {
		return p.intern(raw[1 : len(raw)-1]), nil
	}
	return unquote(raw)
}

// quoted reads a string with its quotes. If plain, there is nothing between them
// but what the string consists of.
func (p *parser) quoted() (raw []byte, plain bool, err error) {
	start, wide := p.at, false
	plain = true
	for i := start + 1; i < len(p.data); i++ {
		switch c := p.data[i]; {
		case c == '"':
			p.at = i + 1
			raw = p.data[start:p.at]
			return raw, plain && (!wide || utf8.Valid(raw)), nil
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			plain = false
		case c >= utf8.RuneSelf:
			wide = true
		}
	}
	return nil, false, p.fail("a string without end")
}

// unquote leaves to the library what is rare: escapes, and what is not allowed.
func unquote(raw []byte) (string, error) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return s, nil
}

func (p *parser) number() (any, error) {
	digits := p.digits()
	if !json.Valid([]byte(digits)) {
		return nil, p.fail("no value")
	}
	if !strings.ContainsAny(digits, ".eE") {
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return nil, p.fail("a number out of range")
	}
	return f, nil
}

// each reads the elements between two brackets.
func (p *parser) each(open, end byte, element func() error) error {
	if p.peek() != open {
		return p.fail(fmt.Sprintf("no %q", open))
	}
	if p.depth++; p.depth > maxDepth {
		return p.fail("nested too deeply")
	}
	p.at++
	if p.peek() == end {
		p.at++
		p.depth--
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if done, err := p.next(end); done || err != nil {
			p.depth--
			return err
		}
	}
}

// fields reads an object; value reads the value of each field. The name is good
// until value reads on.
func (p *parser) fields(value func(name []byte) error) error {
	return p.each('{', '}', func() error {
		name, err := p.name()
		if err != nil {
			return err
		}
		return value(name)
	})
}

// name reads the name of a field, and the colon.
func (p *parser) name() ([]byte, error) {
	if p.peek() != '"' {
		return nil, p.fail("no name of a field")
	}
	name, plain, err := p.quoted()
	if err != nil {
		return nil, err
	}
	if !plain {
		s, err := unquote(name)
		if err != nil {
			return nil, err
		}
		name = []byte(s)
	} else {
		name = name[1 : len(name)-1]
	}
	if p.peek() != ':' {
		return nil, p.fail("no colon")
	}
	p.at++
	return name, nil
}

// raw reads a value without looking into it.
func (p *parser) raw() ([]byte, error) {
	c := p.peek()
	if c == 0 || c == '}' || c == ']' || c == ',' || c == ':' {
		return nil, p.fail("no value")
	}
	e := extent{scalar: c != '{' && c != '[' && c != '"'}
	n, done := e.of(p.data[p.at:])
	if !done && !e.scalar {
		return nil, p.fail("a value without end")
	}
	p.at += n
	return p.data[p.at-n : p.at], nil
}
