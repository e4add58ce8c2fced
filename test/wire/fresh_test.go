package wire

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// fresh is the reverse of normalising: it puts values like a server's in place
// of the placeholders.
func fresh(v any, id, revision string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[fresh(k, id, revision).(string)] = fresh(e, id, revision)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = fresh(e, id, revision)
		}
		return out
	case string:
		if v == "<nodeport>" {
			return 31234
		}
		return strings.NewReplacer(
			"<id>", id,
			"<uid>", "0b54c9a8-3f0e-4c0c-9d2b-5a1c6d7e8f90",
			"<rv>", revision,
			"<time>", "2026-11-15T03:20:45Z",
			"<microtime>", "2026-11-15T03:20:45.123456Z",
			"<gen>", "x7k2p",
			"<ip>", "10.0.0.177",
			"<nodeport>", "31234",
			"<age>", "2m3s",
			"<token>", "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl",
			"<hash>", "Sx1Jxq3yE8o=",
			"<continue>", "eyJ2IjoibWV0YSJ9",
		).Replace(v)
	}
	return v
}

// turned reverses the lists whose order means nothing, and the message that
// lists the causes of a Status.
func turned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			turned(e)
			if list, ok := e.([]any); ok && k == "managedFields" {
				slices.Reverse(list)
			}
		}
		if isStatus(v) {
			turnCauses(v)
		}
	case []any:
		for _, e := range v {
			turned(e)
		}
	}
	return v
}

func turnCauses(status map[string]any) {
	causes := causesOf(status)
	slices.Reverse(causes)
	head, _, listed := strings.Cut(member(status, "message"), " is invalid: [")
	if !listed {
		return
	}
	var items []string
	for _, c := range causes {
		items = append(items, member(c, "field")+": "+member(c, "message"))
	}
	status["message"] = head + " is invalid: [" + strings.Join(items, ", ") + "]"
}

// unselected makes a body from which selecting gives the one recorded, and for
// which polling ends.
func unselected(step Step) any {
	body := step.Response.Body
	if len(step.Request.Select) == 0 || isStatus(body) {
		return body
	}
	values := maps.Clone(body.(map[string]any))
	if p := step.Request.Poll; p != nil && p.Path != "$status" {
		values[p.Path] = p.Equals
	}
	var whole any
	for _, path := range slices.Sorted(maps.Keys(values)) {
		if value := values[path]; value != nil {
			whole = put(whole, mustSplit(path), value)
		}
	}
	return whole
}

func mustSplit(path string) []part {
	parts, err := splitPath(path)
	if err != nil {
		panic(err)
	}
	return parts
}

// put sets a path in a value, making what is missing on the way.
func put(v any, parts []part, value any) any {
	if len(parts) == 0 {
		return value
	}
	p, rest := parts[0], parts[1:]
	_, notNumber := strconv.Atoi(p.key)
	if !p.where && notNumber != nil {
		m, _ := v.(map[string]any)
		if m == nil {
			m = map[string]any{}
		}
		m[p.key] = put(m[p.key], rest, value)
		return m
	}
	list, _ := v.([]any)
	i, ok := p.index(list)
	for !ok {
		list = append(list, put(nil, p.chosen(), p.value))
		i, ok = p.index(list)
	}
	list[i] = put(list[i], rest, value)
	return list
}

// chosen is the path that makes an element the chosen one.
func (p part) chosen() []part {
	if !p.where {
		return []part{{key: "filler"}}
	}
	return mustSplit(p.key)
}
