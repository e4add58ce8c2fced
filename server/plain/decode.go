package plain

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"strconv"
)

// Decode reads an object into a pointer to an empty struct. It returns false if the
// object is not plain; then some of it may have been read.
func Decode(data []byte, into any) bool {
	d := &decoder{data: data}
	v := reflect.ValueOf(into).Elem()
	d.space()
	if d.at == len(data) || data[d.at] != '{' || !readerOf(v.Type())(d, v) {
		return false
	}
	d.space()
	return d.at == len(data)
}

// decoder is a place in some JSON.
type decoder struct {
	data []byte
	at   int
}

func (d *decoder) space() {
	for d.at < len(d.data) {
		switch d.data[d.at] {
		case ' ', '\t', '\r', '\n':
			d.at++
		default:
			return
		}
	}
}

// take takes a character, after spaces, if it is the next.
func (d *decoder) take(c byte) bool {
	d.space()
	if d.at == len(d.data) || d.data[d.at] != c {
		return false
	}
	d.at++
	return true
}

// word takes a literal. That it ends there is seen by what must follow.
func (d *decoder) word(w string) bool {
	d.space()
	if len(d.data)-d.at < len(w) || string(d.data[d.at:d.at+len(w)]) != w {
		return false
	}
	d.at += len(w)
	return true
}

func (d *decoder) null() bool { return d.word("null") }

// members takes an object: read takes the value of each name.
func (d *decoder) members(read func(name []byte) bool) bool {
	if !d.take('{') {
		return false
	}
	if d.take('}') {
		return true
	}
	for {
		d.space()
		name, simple, ok := d.quoted()
		if !ok || !simple || !d.take(':') || !read(name) {
			return false
		}
		if !d.take(',') {
			return d.take('}')
		}
	}
}

// quoted takes a string and returns what is between its quotes, and whether that is
// what it stands for.
func (d *decoder) quoted() (text []byte, simple, ok bool) {
	if d.at == len(d.data) || d.data[d.at] != '"' {
		return nil, false, false
	}
	begin := d.at + 1
	for end := begin; ; end++ {
		n := bytes.IndexByte(d.data[end:], '"')
		if n < 0 {
			return nil, false, false
		}
		if end += n; !escaped(d.data[begin:end]) {
			d.at = end + 1
			text = d.data[begin:end]
			return text, isSimple(text), true
		}
	}
}

// escaped says that a quote after the text belongs to it.
func escaped(text []byte) bool {
	n := 0
	for i := len(text) - 1; i >= 0 && text[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// isSimple reports whether text is printable ASCII without escapes.
func isSimple(text []byte) bool {
	if bytes.IndexByte(text, '\\') >= 0 {
		return false
	}
	const high, space = 0x8080808080808080, 0x2020202020202020
	for ; len(text) >= 8; text = text[8:] {
		// A byte below a space borrows, and one above ASCII has its bit.
		if w := binary.LittleEndian.Uint64(text); (w-space|w)&high != 0 {
			return false
		}
	}
	for _, c := range text {
		if c < ' ' || c >= 0x80 {
			return false
		}
	}
	return true
}

// text takes a string.
func (d *decoder) text() (string, bool) {
	d.space()
	begin := d.at
	text, simple, ok := d.quoted()
	if !ok || simple {
		return string(text), ok
	}
	var s string
	err := json.Unmarshal(d.data[begin:d.at], &s)
	return s, err == nil
}

func (d *decoder) str(v reflect.Value) bool {
	if d.null() {
		return true
	}
	s, ok := d.text()
	v.SetString(s)
	return ok
}

func (d *decoder) boolean(v reflect.Value) bool {
	switch {
	case d.null():
		return true
	case d.word("true"):
		v.SetBool(true)
		return true
	}
	return d.word("false")
}

func (d *decoder) integer(v reflect.Value) bool {
	if d.null() {
		return true
	}
	begin := d.at
	if d.at < len(d.data) && d.data[d.at] == '-' {
		d.at++
	}
	digits := d.at
	for d.at < len(d.data) && d.data[d.at] >= '0' && d.data[d.at] <= '9' {
		d.at++
	}
	if d.at == digits || (d.data[digits] == '0' && d.at > digits+1) {
		return false
	}
	n, err := strconv.ParseInt(string(d.data[begin:d.at]), 10, 64)
	if err != nil || v.OverflowInt(n) {
		return false
	}
	v.SetInt(n)
	return true
}

func (d *decoder) base64(v reflect.Value) bool {
	if d.null() {
		return true
	}
	s, ok := d.text()
	if !ok {
		return false
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return false
	}
	v.SetBytes(b)
	return true
}

func (d *decoder) stringMap(v reflect.Value) bool {
	if d.null() {
		return true
	}
	m := map[string]string{}
	ok := d.members(func(name []byte) bool {
		if _, twice := m[string(name)]; twice {
			return false
		}
		key := string(name)
		d.space()
		if d.at < len(d.data) && d.data[d.at] == 'n' {
			return false // the empty string, or nothing: let the real decoder say
		}
		s, ok := d.text()
		m[key] = s
		return ok
	})
	v.Set(reflect.ValueOf(m))
	return ok
}

// unmarshaled gives a value to a type that reads itself.
func (d *decoder) unmarshaled(v reflect.Value) bool {
	d.space()
	begin := d.at
	if !d.skip() {
		return false
	}
	return v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(d.data[begin:d.at]) == nil
}

// skip passes a value of any kind.
func (d *decoder) skip() bool {
	begin := d.at
	if d.at < len(d.data) && d.data[d.at] == '"' {
		if _, simple, ok := d.quoted(); !ok || simple {
			return ok
		}
		return json.Valid(d.data[begin:d.at])
	}
	for depth := 0; d.at < len(d.data); {
		switch d.data[d.at] {
		case '"':
			if _, _, ok := d.quoted(); !ok {
				return false
			}
			continue
		case ' ', '\t', '\r', '\n':
			if depth == 0 {
				return json.Valid(d.data[begin:d.at])
			}
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return json.Valid(d.data[begin:d.at])
			}
			if d.data[d.at] != ',' {
				if depth--; depth == 0 {
					d.at++
					return json.Valid(d.data[begin:d.at])
				}
			}
		}
		d.at++
	}
	return false
}
