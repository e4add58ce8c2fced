package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// A path leads into a JSON value: `a.b`, `a.0.b` (index), `a[type=Ready].b`
// (the first element whose type is Ready; the key may be a path itself),
// `a['x.y/z']` (a key with dots). The empty path is the whole value.

// lookup follows a path; ok is false where it leads nowhere.
func lookup(v any, path string) (found any, ok bool) {
	parts, err := splitPath(path)
	if err != nil {
		return nil, false
	}
	for _, p := range parts {
		if v, ok = p.in(v); !ok {
			return nil, false
		}
	}
	return v, true
}

// part is one step of a path: a key (or index), or a choice of an element.
type part struct {
	key   string
	where bool // choose the element whose key is value
	value string
}

func (p part) in(v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		if p.where {
			return nil, false
		}
		e, ok := v[p.key]
		return e, ok
	case []any:
		i, ok := p.index(v)
		if !ok {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

func (p part) index(list []any) (int, bool) {
	if !p.where {
		i, err := strconv.Atoi(p.key)
		return i, err == nil && i >= 0 && i < len(list)
	}
	for i, e := range list {
		if have, ok := lookup(e, p.key); ok && text(have) == p.value {
			return i, true
		}
	}
	return 0, false
}

func splitPath(path string) ([]part, error) {
	var parts []part
	for rest := path; rest != ""; {
		var p part
		var err error
		if rest[0] == '[' {
			p, rest, err = cutBracket(rest)
			if err != nil {
				return nil, fmt.Errorf("path %q: %w", path, err)
			}
		} else {
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			p.key, rest = rest[:end], rest[end:]
		}
		parts = append(parts, p)
		rest = strings.TrimPrefix(rest, ".")
	}
	return parts, nil
}

// cutBracket reads ['key'] or [key=value].
func cutBracket(s string) (p part, rest string, err error) {
	if quoted, ok := strings.CutPrefix(s, "['"); ok {
		key, rest, ok := strings.Cut(quoted, "']")
		if !ok {
			return part{}, "", fmt.Errorf("no end of %s", s)
		}
		return part{key: key}, rest, nil
	}
	inner, rest, ok := strings.Cut(s[1:], "]")
	if !ok {
		return part{}, "", fmt.Errorf("no end of %s", s)
	}
	key, value, ok := strings.Cut(inner, "=")
	if !ok {
		return part{}, "", fmt.Errorf("[%s] chooses by no value", inner)
	}
	return part{key: key, where: true, value: value}, rest, nil
}

// text is a value as a variable holds it.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}
