package wire

import (
	"cmp"
	"slices"
	"strings"
)

// ordered sorts, in place and at every depth, the lists whose order means
// nothing: managedFields, and the causes of a Status with the message that
// lists them.
func ordered(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			ordered(e)
			if list, ok := e.([]any); ok && k == "managedFields" {
				sortBy(list, "manager", "operation", "subresource", "apiVersion")
			}
		}
		if isStatus(v) {
			orderCauses(v)
		}
	case []any:
		for _, e := range v {
			ordered(e)
		}
	}
	return v
}

func isStatus(v any) bool {
	m, ok := v.(map[string]any)
	return ok && m["kind"] == "Status" && m["apiVersion"] == "v1"
}

func orderCauses(status map[string]any) {
	causes := causesOf(status)
	sortBy(causes, "field", "message", "reason")
	message, _ := status["message"].(string)
	head, list, ok := strings.Cut(message, " is invalid: [")
	if !ok || len(causes) == 0 || !strings.HasSuffix(list, "]") {
		return
	}
	var items []string
	for _, c := range causes {
		item := member(c, "field") + ": " + member(c, "message")
		if !slices.Contains(items, item) { // the real server says each once
			items = append(items, item)
		}
	}
	// Where the list is not made of the causes, it stays as it came.
	if joined := strings.Join(items, ", "); len(joined)+1 == len(list) {
		status["message"] = head + " is invalid: [" + joined + "]"
	}
}

func causesOf(status map[string]any) []any {
	details, _ := status["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	return causes
}

// sortBy sorts objects by the strings of some members; a missing one is "".
func sortBy(list []any, keys ...string) {
	slices.SortStableFunc(list, func(a, b any) int {
		for _, k := range keys {
			if c := cmp.Compare(member(a, k), member(b, k)); c != 0 {
				return c
			}
		}
		return 0
	})
}

func member(v any, key string) string {
	m, _ := v.(map[string]any)
	s, _ := m[key].(string)
	return s
}

// sortLists sorts the lists that a request names, by their encoding.
func sortLists(body any, paths []string) {
	for _, path := range paths {
		found, _ := lookup(body, path)
		if list, ok := found.([]any); ok {
			slices.SortStableFunc(list, func(a, b any) int { return cmp.Compare(encoded(a), encoded(b)) })
		}
	}
}

func encoded(v any) string {
	b, err := encodeBody([]any{v})
	if err != nil {
		return ""
	}
	return string(b)
}

// selected keeps only some paths of a body, null where one leads nowhere. A
// Status is kept whole.
func selected(body any, paths []string) any {
	if len(paths) == 0 || isStatus(body) {
		return body
	}
	out := map[string]any{}
	for _, path := range paths {
		out[path], _ = lookup(body, path)
	}
	return out
}
