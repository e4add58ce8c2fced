package patch

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// item is an item of a map or a list, with what tells it from the others: a
// name or a key.
type item struct {
	name  string
	key   []keyPart
	value reflect.Value
}

// keyPart is one field of a key: a number or a text.
type keyPart struct {
	name     string
	text     string
	number   int64
	isNumber bool
}

func compareParts(p, q keyPart) int {
	if c := strings.Compare(p.name, q.name); c != 0 {
		return c
	}
	if p.isNumber != q.isNumber { // numbers come first
		if p.isNumber {
			return -1
		}
		return 1
	}
	if c := cmp.Compare(p.number, q.number); c != 0 {
		return c
	}
	return strings.Compare(p.text, q.text)
}

func compareKeys(a, b item) int {
	return slices.CompareFunc(a.key, b.key, compareParts)
}

// list writes the items of a keyed list or a set, sorted by key.
func (w *setWriter) list(v reflect.Value, s *shape) error {
	firstItem, firstPart := len(w.items), len(w.parts)
	for i := range v.Len() {
		key, err := w.keyOf(v.Index(i), s)
		if err != nil {
			return err
		}
		w.items = append(w.items, item{key: key, value: v.Index(i)})
	}
	items := w.items[firstItem:]
	slices.SortFunc(items, compareKeys)
	for len(items) > 0 {
		same := 1
		for same < len(items) && compareKeys(items[0], items[same]) == 0 {
			same++
		}
		if err := w.listItem(items[:same], s); err != nil {
			return err
		}
		items = items[same:]
	}
	w.items, w.parts = w.items[:firstItem], w.parts[:firstPart]
	return nil
}

// listItem writes the items of one key. Several count as one leaf.
func (w *setWriter) listItem(same []item, s *shape) error {
	at := w.open(true)
	w.out = s.appendKey(w.out, same[0].key)
	if len(same) == 1 {
		return w.item(at, &same[0], s.elem)
	}
	for i := range same {
		if err := w.scan(same[i].value, s.elem, absent); err != nil {
			return err
		}
	}
	w.close(w.brace(at), true)
	return nil
}

// keyOf returns the key of a list's item, on the stack of parts.
func (w *setWriter) keyOf(v reflect.Value, s *shape) ([]keyPart, error) {
	first := len(w.parts)
	if s.form == set {
		w.parts = append(w.parts, keyPart{text: v.String()})
	}
	for i := range s.keys {
		part, ok, err := s.keys[i].of(v)
		if err != nil {
			return nil, err
		}
		if ok {
			w.parts = append(w.parts, part)
		}
	}
	if len(w.parts) == first {
		return nil, errOpaque // the library refuses an item with no key
	}
	return w.parts[first:len(w.parts):len(w.parts)], nil
}

// of returns the part of an item's key; not ok means that the item has none.
func (k *keyShape) of(item reflect.Value) (part keyPart, ok bool, err error) {
	part.name = k.name
	if k.entry != nil {
		if v := k.entry.GetFrom(item); !k.entry.CanOmit(v) {
			return part.with(v, k.entry)
		}
	}
	switch fallback := k.fallback.(type) {
	case nil:
		return part, false, nil
	case string:
		part.text = fallback
	case int:
		part.number, part.isNumber = int64(fallback), true
	default:
		return part, false, errOpaque
	}
	return part, true, nil
}

func (p keyPart) with(v reflect.Value, entry *value.FieldCacheEntry) (keyPart, bool, error) {
	if entry.TypeEntry.CanConvertToUnstructured() {
		return p, false, errOpaque
	}
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		p.text = v.String()
	case reflect.Int, reflect.Int32, reflect.Int64:
		p.number, p.isNumber = v.Int(), true
	default:
		return p, false, errOpaque
	}
	return p, true, nil
}

// appendKey appends the key of an item as a JSON string.
func (s *shape) appendKey(b []byte, key []keyPart) []byte {
	if slices.ContainsFunc(key, func(p keyPart) bool { return !isPlain(p.text) }) {
		return append(b, libraryKey(s.pathElement(key))...)
	}
	if s.form == set {
		return append(append(append(b, `"v:\"`...), key[0].text...), `\""`...)
	}
	b = append(b, `"k:{`...)
	for i, p := range key {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `\"`...), p.name...), `\":`...)
		if p.isNumber {
			b = strconv.AppendInt(b, p.number, 10)
		} else {
			b = append(append(append(b, `\"`...), p.text...), `\"`...)
		}
	}
	return append(b, `}"`...)
}

func (s *shape) pathElement(key []keyPart) fieldpath.PathElement {
	if s.form == set {
		return fieldpath.ValueElement(value.NewValueInterface(key[0].text))
	}
	var fields []value.Field
	for _, p := range key {
		var v any = p.text
		if p.isNumber {
			v = p.number
		}
		fields = append(fields, value.Field{Name: p.name, Value: value.NewValueInterface(v)})
	}
	return fieldpath.KeyElement(fields...)
}
