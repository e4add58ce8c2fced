package wire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// variables are what ${name} stands for in the requests of one scenario.
type variables map[string]string

var variable = regexp.MustCompile(`\$\{(\w+)\}`)

// expand replaces ${name}; escape, if not nil, is applied to what is put in.
func (v variables) expand(s string, escape func(string) string) (string, error) {
	var missing error
	out := variable.ReplaceAllStringFunc(s, func(ref string) string {
		name := ref[2 : len(ref)-1]
		value, ok := v[name]
		if !ok {
			missing = fmt.Errorf("no earlier step saved ${%s}", name)
		}
		if escape != nil {
			return escape(value)
		}
		return value
	})
	return out, missing
}

// expandPath percent-encodes what it puts in.
func (v variables) expandPath(path string) (string, error) {
	return v.expand(path, func(s string) string {
		return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	})
}

// expandValue returns a copy of a JSON value with variables replaced in all
// strings, keys included.
func (v variables) expandValue(value any) (any, error) {
	switch value := value.(type) {
	case string:
		return v.expand(value, nil)
	case []any:
		out := make([]any, len(value))
		for i, e := range value {
			var err error
			if out[i], err = v.expandValue(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		return v.expandMap(value)
	}
	return value, nil
}

func (v variables) expandMap(m map[string]any) (any, error) {
	out := make(map[string]any, len(m))
	for k, e := range m {
		key, err := v.expand(k, nil)
		if err != nil {
			return nil, err
		}
		if out[key], err = v.expandValue(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// encodeBody returns the bytes of a request body that was expanded: a string
// as it is, anything else as compact JSON with sorted keys.
func encodeBody(body any) ([]byte, error) {
	if s, ok := body.(string); ok {
		return []byte(s), nil
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// save remembers what paths into a body, not yet normalised, lead to.
func (v variables) save(paths map[string]string, body any) {
	for name, path := range paths {
		delete(v, name)
		if found, ok := lookup(body, path); ok {
			v[name] = text(found)
		}
	}
}

// relations evaluates comparisons of a body, not yet normalised, with variables.
func (v variables) relations(all []relation, body any) map[string]bool {
	if len(all) == 0 {
		return nil
	}
	out := map[string]bool{}
	for _, r := range all {
		found, ok := lookup(body, r[0])
		saved, known := v[r[2]]
		out[r.String()] = ok && known && related(text(found), r[1], saved)
	}
	return out
}

func related(have, op, saved string) bool {
	switch op {
	case "eq":
		return have == saved
	case "ne":
		return have != saved
	case "gt":
		a, errA := strconv.ParseFloat(have, 64)
		b, errB := strconv.ParseFloat(saved, 64)
		return errA == nil && errB == nil && a > b
	}
	return false
}

// newID returns eight lower-case letters and digits that are neither a number
// nor hexadecimal, so that they are found in an answer only where they were put.
func newID() string {
	const first, others = "ghjkmnpqrstvwxyz", "abcdefghijkmnpqrstuvwxyz23456789"
	id := []byte{first[rand.IntN(len(first))]}
	for len(id) < 8 {
		id = append(id, others[rand.IntN(len(others))])
	}
	return string(id)
}
