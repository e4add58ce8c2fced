package openapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func FuzzQuoted(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\nb\tc", `say "x" \ y`, "\x00\x1f\x7f", "ü€😀", "\xff\xfe", "<&>\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendQuoted(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if want := strings.ToValidUTF8(s, "\uFFFD"); got != want {
			t.Errorf("%q became %q", want, got)
		}
	})
}

// What is flushed piece by piece is what is written at once.
func TestFlushedPiecesMakeTheWhole(t *testing.T) {
	write := func(w *jsonWriter) {
		w.open('{')
		for range 2000 {
			w.key("list")
			w.strings([]string{"a", strings.Repeat("b", 40)})
			w.field("text", "{")
		}
		w.close('}')
	}
	var whole jsonWriter
	write(&whole)
	var pieces bytes.Buffer
	flushes := 0
	w := jsonWriter{flush: func(b []byte) { pieces.Write(b); flushes++ }}
	write(&w)
	pieces.Write(w.b)
	if !bytes.Equal(whole.b, pieces.Bytes()) || !json.Valid(whole.b) {
		t.Error("the pieces are not the whole")
	}
	if flushes < 2 || w.written+len(w.b) != len(whole.b) {
		t.Errorf("%d flushes, %d bytes", flushes, w.written+len(w.b))
	}
}
