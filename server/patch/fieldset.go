package patch

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// errOpaque: the value has something that only the library can judge.
var errOpaque = errors.New("not known how to count the fields")

// before is what a value is compared with: what an empty object has there.
type before int

const (
	absent before = iota // nothing
	null                 // a null
	zeroed               // the zero value of the same Go type
)

// setWriter writes the fields that a value has beyond an empty object's as a
// field set in JSON, byte for byte as structured-merge-diff writes what its
// Compare finds added or modified. The way there is one walk over the value:
// the library walks it three times, and the empty object twice.
//
// The library's rules, which the walk follows: a leaf counts if there was none
// before or it differs; a container counts if there was none before, and then
// so does everything in it; an empty container is a leaf. Fields come sorted by
// name, items by key. Any other case ends the walk with errOpaque.
type setWriter struct {
	out   []byte
	items []item    // a stack: those of the containers being written
	parts []keyPart // of the items' keys
	work  int       // that check has seen
}

// value writes what is below v and reports whether v itself counts.
func (w *setWriter) value(v reflect.Value, s *shape, old before, m *mask) (bool, error) {
	if s == nil {
		return false, errOpaque
	}
	isNull := s.convert == nil && s.isNull(v)
	if v.Kind() == reflect.Pointer && !isNull && s.convert == nil {
		v = v.Elem()
	}
	s.fill()
	switch {
	case s.form == opaque:
		return false, errOpaque
	case s.form == leaf:
		return w.leaf(v, s, old, isNull)
	case isNull:
		return old == absent, nil
	case s.form == record:
		return w.record(v, s, old, m)
	case v.Len() == 0:
		return true, nil // and something else before: an empty object has nulls
	case s.form == table:
		return old == absent, w.table(v, s)
	}
	return old == absent, w.list(v, s)
}

func (w *setWriter) leaf(v reflect.Value, s *shape, old before, isNull bool) (bool, error) {
	if s.inside != opaque && !isNull {
		if err := w.check(v, s); err != nil {
			return false, err
		}
	}
	switch {
	case old == absent:
		return true, nil
	case s.convert != nil:
		return s.convertedDiffers(v, old)
	case old == null:
		return !isNull, nil
	}
	return s.differsFromZero(v)
}

// convertedDiffers compares a value with a JSON form of its own to what was.
func (s *shape) convertedDiffers(v reflect.Value, old before) (bool, error) {
	now, err := s.convert.ToUnstructured(v)
	if err != nil {
		return false, errOpaque
	}
	var was any
	if old == zeroed {
		if was, err = s.convert.ToUnstructured(reflect.Zero(v.Type())); err != nil {
			return false, errOpaque
		}
	}
	switch now.(type) {
	case nil, string, bool, int64:
		return now != was, nil
	}
	if was == nil {
		return true, nil
	}
	return false, errOpaque
}

// differsFromZero compares a leaf to the zero value of its Go type.
func (s *shape) differsFromZero(v reflect.Value) (bool, error) {
	switch v.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64:
		return !v.IsZero(), nil
	case reflect.Struct:
		return s.recordDiffersFromZero(v)
	}
	return false, errOpaque
}

func (s *shape) recordDiffersFromZero(v reflect.Value) (bool, error) {
	for i := range s.fields {
		f := &s.fields[i]
		field := f.GetFrom(v)
		if f.CanOmit(field) {
			continue
		}
		if f.zero == absent {
			return true, nil
		}
		if f.shape == nil || f.shape.form != leaf || f.zero == null || f.shape.convert != nil {
			return false, errOpaque
		}
		f.shape.fill()
		if differs, err := f.shape.differsFromZero(field); differs || err != nil {
			return differs, err
		}
	}
	return false, nil
}

func (w *setWriter) record(v reflect.Value, s *shape, old before, m *mask) (bool, error) {
	empty := true
	for i := range s.fields {
		f := &s.fields[i]
		field := f.GetFrom(v)
		if f.CanOmit(field) {
			continue
		}
		empty = false
		below := absent
		if old == zeroed {
			below = f.zero
		}
		if err := w.field(field, f, below, m.of(f.JsonName)); err != nil {
			return false, err
		}
	}
	if empty {
		return old != zeroed, nil
	}
	return old == absent, nil
}

func (w *setWriter) field(v reflect.Value, f *fieldShape, old before, m *mask) error {
	if m != nil && m.whole {
		return w.scan(v, f.shape, old)
	}
	at := w.open(old == absent)
	w.out = append(w.out, f.key...)
	at = w.brace(at)
	counts, err := w.value(v, f.shape, old, m)
	if err != nil {
		return err
	}
	w.close(at, counts && (m == nil || !m.self))
	return nil
}

// scan walks a value that is not counted, for what the library would refuse.
func (w *setWriter) scan(v reflect.Value, s *shape, old before) error {
	end := len(w.out)
	_, err := w.value(v, s, old, nil)
	w.out = w.out[:end]
	return err
}

func (w *setWriter) table(v reflect.Value, s *shape) error {
	first := len(w.items)
	if m, ok := v.Interface().(map[string]string); ok && s.elem.countsAlways() {
		for name := range m {
			w.items = append(w.items, item{name: name})
		}
	} else {
		for iter := v.MapRange(); iter.Next(); {
			w.items = append(w.items, item{name: iter.Key().String(), value: iter.Value()})
		}
	}
	items := w.items[first:]
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	for i := range items {
		at := w.open(true)
		w.out = appendField(w.out, items[i].name)
		if err := w.item(at, &items[i], s.elem); err != nil {
			return err
		}
	}
	w.items = w.items[:first]
	return nil
}

// item ends the node of a table's or a list's item, whose key is written.
// Nothing like it was there before.
func (w *setWriter) item(at position, i *item, s *shape) error {
	at = w.brace(at)
	if s.countsAlways() {
		w.close(at, true)
		return nil
	}
	counts, err := w.value(i.value, s, absent, nil)
	if err != nil {
		return err
	}
	w.close(at, counts)
	return nil
}

// countsAlways reports whether every value of the shape is a leaf that counts
// where nothing was before.
func (s *shape) countsAlways() bool {
	return s != nil && s.form == leaf && s.inside == opaque
}

// position is where in the output a node began.
type position struct {
	start, brace int
	marked       bool
}

// mark says that a node itself counts, if others below do.
const mark = `".":{}`

// open begins a node; its key comes next, then brace.
func (w *setWriter) open(marked bool) position {
	at := position{start: len(w.out), marked: marked}
	if last := w.out[len(w.out)-1]; last != '{' {
		w.out = append(w.out, ',')
	}
	return at
}

func (w *setWriter) brace(at position) position {
	w.out = append(w.out, ":{"...)
	at.brace = len(w.out)
	if at.marked {
		w.out = append(w.out, mark...)
	}
	return at
}

// close ends a node. One that counts and has nothing below it is {}; one that
// does not count and has nothing below it goes.
func (w *setWriter) close(at position, counts bool) {
	below := at.brace
	if at.marked {
		below += len(mark)
	}
	switch hasBelow := len(w.out) > below; {
	case !counts && !hasBelow:
		w.out = w.out[:at.start]
		return
	case !hasBelow:
		w.out = w.out[:at.brace]
	case !counts && at.marked:
		w.out = slices.Delete(w.out, at.brace, below+len(","))
	}
	w.out = append(w.out, '}')
}

// appendField appends a field's key as a JSON string.
func appendField(b []byte, name string) []byte {
	if !isPlain(name) {
		return append(b, libraryKey(fieldpath.FieldNameElement(name))...)
	}
	return append(append(append(b, `"f:`...), name...), '"')
}

// isPlain reports whether JSON has a string as it is.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// libraryKey lets the library write a key.
func libraryKey(pe fieldpath.PathElement) string {
	text, err := fieldpath.NewSet(fieldpath.Path{pe}).ToJSON()
	if err != nil {
		panic("patch: write a key: " + err.Error())
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), "{"), ":{}}")
}

var writers = sync.Pool{New: func() any { return &setWriter{} }}

// maxPooled bounds the buffer that a writer keeps.
const maxPooled = 64 << 10

// release empties the writer, so that it keeps no object alive, and pools it.
func (w *setWriter) release() {
	clear(w.items[:cap(w.items)])
	clear(w.parts[:cap(w.parts)])
	w.out, w.items, w.parts, w.work = w.out[:0], w.items[:0], w.parts[:0], 0
	if cap(w.out) <= maxPooled && cap(w.items) <= maxPooled/64 && cap(w.parts) <= maxPooled/64 {
		writers.Put(w)
	}
}

// added returns the field set of what a new object has beyond an empty one, or
// nil if that is nothing.
func (s *shape) added(obj reflect.Value, m *mask) (*metav1.FieldsV1, error) {
	w := writers.Get().(*setWriter)
	defer w.release()
	s.fill()
	w.out = append(w.out, '{')
	if _, err := w.record(obj, s, zeroed, m); err != nil || len(w.out) == len("{") {
		return nil, err
	}
	set := &metav1.FieldsV1{}
	set.SetRawBytes(append(w.out, '}')) // which copies them
	return set, nil
}
