package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/even-keel/evenkeel/client"

	kjson "sigs.k8s.io/json"
)

// newObject returns an empty object. T is a pointer: [New] refuses others.
func newObject[T client.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

// decode reads an object; nothing, or null, is nil.
func decode[T client.Object](data []byte) (T, error) {
	var none T
	if len(data) == 0 || string(data) == "null" {
		return none, nil
	}
	obj := newObject[T]()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, obj); err != nil {
		return none, fmt.Errorf("decode a %T: %w", obj, err)
	}
	return obj, nil
}

// parse reads JSON. Numbers stay as they are written.
func parse(data []byte) (tree any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&tree)
	return tree, err
}

// treeOf is what an object is written as.
func treeOf(obj any) (any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode a %T: %w", obj, err)
	}
	return parse(data)
}

// transfer returns raw with the changes that lead from before to after. before is
// what a Go type made of raw: it may lack fields, and have others. What is the same in
// before and after is in the result as it is in raw. No argument is changed.
func transfer(raw, before, after any) any {
	if reflect.DeepEqual(before, after) {
		return raw
	}
	switch after := after.(type) {
	case map[string]any:
		if raw, ok := raw.(map[string]any); ok {
			before, _ := before.(map[string]any)
			return transferFields(raw, before, after)
		}
	case []any:
		raw, _ := raw.([]any)
		if before, _ := before.([]any); len(raw) == len(before) {
			return transferItems(raw, before, after)
		}
	}
	return after
}

func transferFields(raw, before, after map[string]any) map[string]any {
	out := maps.Clone(raw)
	for key := range before {
		if _, kept := after[key]; !kept {
			delete(out, key)
		}
	}
	for key, value := range after {
		was, had := before[key]
		if had && reflect.DeepEqual(was, value) {
			continue // as it is in raw, where it may be absent
		}
		out[key] = value
		if old, ok := raw[key]; ok {
			out[key] = transfer(old, was, value)
		}
	}
	return out
}

func transferItems(raw, before, after []any) []any {
	out := slices.Clone(after)
	for i, from := range pair(before, after) {
		if from >= 0 {
			out[i] = transfer(raw[from], before[from], after[i])
		}
	}
	return out
}

// pair finds which item of before each item of after is, or -1: an equal one; else one
// of the same name; else, if there are as many as before, the one in its place, unless
// that has another name.
func pair(before, after []any) []int {
	out, taken := make([]int, len(after)), make([]bool, len(before))
	for i := range out {
		out[i] = -1
	}
	for _, key := range []func(any) string{textOf, nameOf} {
		at := map[string][]int{}
		for j, item := range before {
			if !taken[j] {
				at[key(item)] = append(at[key(item)], j)
			}
		}
		delete(at, "")
		for i, item := range after {
			if same := at[key(item)]; out[i] < 0 && len(same) > 0 {
				out[i], taken[same[0]], at[key(item)] = same[0], true, same[1:]
			}
		}
	}
	for i := range out {
		if len(after) == len(before) && out[i] < 0 && !taken[i] && (nameOf(before[i]) == "" || nameOf(after[i]) == "") {
			out[i] = i
		}
	}
	return out
}

func textOf(item any) string {
	text, _ := json.Marshal(item) // what was parsed can be written
	return string(text)
}

// nameOf is what tells an item of a list from others.
func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	for _, key := range []string{"name", "key", "type"} {
		if name, ok := fields[key].(string); ok {
			return name
		}
	}
	return ""
}

// patch is a JSON patch (RFC 6902).
type patch []map[string]any

// compare appends what makes from of to. Lists of another length are replaced.
func (p *patch) compare(path string, from, to any) {
	if reflect.DeepEqual(from, to) {
		return
	}
	switch to := to.(type) {
	case map[string]any:
		if from, ok := from.(map[string]any); ok {
			p.compareFields(path, from, to)
			return
		}
	case []any:
		if from, ok := from.([]any); ok && len(from) == len(to) {
			for i := range to {
				p.compare(path+"/"+strconv.Itoa(i), from[i], to[i])
			}
			return
		}
	}
	*p = append(*p, map[string]any{"op": "replace", "path": path, "value": to})
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func (p *patch) compareFields(path string, from, to map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, kept := to[key]; !kept {
			*p = append(*p, map[string]any{"op": "remove", "path": path + "/" + pointerEscapes.Replace(key)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(to)) {
		at := path + "/" + pointerEscapes.Replace(key)
		if old, had := from[key]; had {
			p.compare(at, old, to[key])
		} else {
			*p = append(*p, map[string]any{"op": "add", "path": at, "value": to[key]})
		}
	}
}
