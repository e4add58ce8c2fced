package watch

import (
	"strings"
	"sync"
	"testing"

	"github.com/even-keel/evenkeel/storage"
)

func lineObject(t *testing.T, name, content string, rev storage.Revision) *Object {
	t.Helper()
	value, err := Stored([]byte(`{"name":"` + name + `","resourceVersion":"` + Placeholder + `","content":"` + content + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewObject(Key("things", "n", name), value, rev)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestLinesTellWhatHappened(t *testing.T) {
	a, b := lineObject(t, "a", "1", 4), lineObject(t, "a", "2", 5)
	l := &lines{}
	for want, e := range map[string]*Event{
		`{"type":"ADDED","object":{"name":"a","resourceVersion":"4","content":"1"}}`:    {Revision: 4, Object: a},
		`{"type":"MODIFIED","object":{"name":"a","resourceVersion":"5","content":"2"}}`: {Revision: 5, Object: b, Previous: a},
		`{"type":"DELETED","object":{"name":"a","resourceVersion":"6","content":"2"}}`:  {Revision: 6, Previous: b},
	} {
		if e.Line() != nil {
			t.Error("an event that is not shared has a line")
		}
		e.lines = l
		if got := string(e.Line()); got != want+"\n" {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	long := &Event{Revision: 7, Object: lineObject(t, "a", strings.Repeat("x", longestLine), 7), lines: l}
	if long.Line() != nil {
		t.Error("a long object has a line")
	}
}

// Many goroutines walk the same events: each sees the lines that belong to them, and
// nearly all in a few runs.
func TestLinesLieBehindOneAnother(t *testing.T) {
	l := &lines{}
	var events []*Event
	var want strings.Builder
	for i := range 1000 {
		o := lineObject(t, "a", strings.Repeat("x", i%300), storage.Revision(i+1))
		e := &Event{Revision: o.Revision, Object: o, lines: l}
		events = append(events, e)
		want.Write(AppendLine(nil, "ADDED", o))
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var got strings.Builder
			var run []byte
			runs := 0
			for _, e := range events {
				joined := false
				if run, joined = Join(run, e.Line()); !joined {
					got.Write(run)
					run = e.Line()
					runs++
				}
			}
			got.Write(run)
			if got.String() != want.String() {
				t.Error("the lines are not those of the events")
			}
			if runs > 500 { // others may have made one in between
				t.Errorf("%d runs", runs)
			}
		})
	}
	all.Wait()
}

func TestWhatDoesNotFollowIsNotJoined(t *testing.T) {
	page := []byte("abcdefgh")
	for name, c := range map[string]struct{ run, line []byte }{
		"a gap":          {page[0:2], page[3:5]},
		"the other way":  {page[3:5], page[0:3]},
		"another page":   {page[0:2], []byte("cd")},
		"at the end":     {page[6:8], []byte("i")},
		"nothing before": {nil, page[0:1]},
		"nothing after":  {page[0:2], nil},
	} {
		if got, joined := Join(c.run, c.line); joined || string(got) != string(c.run) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got, joined := Join(page[0:2], page[2:5]); !joined || string(got) != "abcde" {
		t.Errorf("%q", got)
	}
}
