package openapi

import (
	"strings"
	"unicode/utf8"
)

// jsonWriter appends JSON to b. Commas are its business: it writes one before a
// key or an element that is not the first.
type jsonWriter struct {
	b []byte
	// flush, if set, is given what is in b from time to time, and the rest is
	// for the caller to give. written counts what it was given.
	flush   func([]byte)
	written int
}

const flushAt = 32 << 10

// flushSome empties b but for the last byte, by which commas are decided.
func (w *jsonWriter) flushSome() {
	if w.flush == nil || len(w.b) < flushAt {
		return
	}
	last := len(w.b) - 1
	w.flush(w.b[:last])
	w.written += last
	w.b = append(w.b[:0], w.b[last])
}

func (w *jsonWriter) comma() {
	if n := len(w.b); n > 0 {
		if c := w.b[n-1]; c != '{' && c != '[' && c != ':' {
			w.b = append(w.b, ',')
		}
	}
}

// open begins an object or a list, which may be an element or follow a key.
func (w *jsonWriter) open(c byte) {
	w.comma()
	w.b = append(w.b, c)
}

func (w *jsonWriter) close(c byte) { w.b = append(w.b, c) }

func (w *jsonWriter) key(name string) {
	w.flushSome()
	w.comma()
	w.b = append(appendQuoted(w.b, name), ':')
}

// raw writes JSON as it is, as an element or after a key.
func (w *jsonWriter) raw(json string) {
	w.comma()
	w.b = append(w.b, json...)
}

func (w *jsonWriter) string(s string) {
	w.comma()
	w.b = appendQuoted(w.b, s)
}

func (w *jsonWriter) strings(list []string) {
	w.open('[')
	for _, s := range list {
		w.string(s)
	}
	w.close(']')
}

// field writes a key and a string.
func (w *jsonWriter) field(name, value string) {
	w.key(name)
	w.b = appendQuoted(w.b, value)
}

// optional writes a key and a string unless it is empty.
func (w *jsonWriter) optional(name, value string) {
	if value != "" {
		w.field(name, value)
	}
}

// rawField writes a key and JSON unless it is empty.
func (w *jsonWriter) rawField(name, json string) {
	if json != "" {
		w.key(name)
		w.b = append(w.b, json...)
	}
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends a JSON string. Text that is not UTF-8 becomes U+FFFD.
func appendQuoted(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// quoted returns a JSON string, "" for an empty one.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return string(appendQuoted(nil, s))
}

// quotedList returns a JSON list of strings, "" for an empty one.
func quotedList(list []string) string {
	if len(list) == 0 {
		return ""
	}
	var w jsonWriter
	w.strings(list)
	return string(w.b)
}
