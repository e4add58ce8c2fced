package side

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/bench/controllers/foo"
)

func TestNamesAndIndexes(t *testing.T) {
	for _, i := range []int{0, 7, 12_345, 99_999_999} {
		if name := NameOf(i); len(name) != 12 || indexOf(name) != i {
			t.Errorf("%d is %q, which is %d", i, name, indexOf(name))
		}
	}
}

// stampOf is one of those that are made, by its number.
func stampOf(i int) string { return fmt.Sprint(1_790_000_000_000_000_000 + i) }

func TestStampsAreFoundHoweverTheyAreRead(t *testing.T) {
	const events = 100
	var stream strings.Builder
	for i := range events {
		fmt.Fprintf(&stream, `{"type":"MODIFIED","object":{"metadata":{"annotations":{"%s":"%s"},"name":"%s"}}}`+"\n", SentAt, stampOf(i), NameOf(i))
	}
	for name, read := range map[string]func(io.Reader) io.Reader{
		"whole":   func(r io.Reader) io.Reader { return r },
		"bytes":   iotest.OneByteReader,
		"halves":  iotest.HalfReader,
		"at once": iotest.DataErrReader,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaits()
			body := &watched{ReadCloser: io.NopCloser(read(strings.NewReader(stream.String()))), of: w}
			if _, err := io.Copy(io.Discard, struct{ io.Reader }{body}); err != nil {
				t.Fatal(err)
			}
			w.saw(events, stampOf(events), time.Now(), false)
			for i := range events {
				w.saw(i, stampOf(i), time.Now(), true)
				w.saw(i, stampOf(i), time.Now(), true) // once more, which is no other change
			}
			a, err := w.report()
			if err != nil || a["count"] != events {
				t.Errorf("%v, %v", a, err)
			}
			if w.count() != 0 {
				t.Error("the report did not begin anew")
			}
		})
	}
}

func TestAChangeThatNoWatchTold(t *testing.T) {
	w := newWaits()
	w.saw(0, stampOf(0), time.Now(), true)
	if _, err := w.report(); err == nil {
		t.Error("nobody noticed")
	}
}

func TestPercentiles(t *testing.T) {
	var all []time.Duration
	for i := range 101 {
		all = append(all, time.Duration(i)*time.Microsecond)
	}
	if got := percentile(all, 99); got != 99 {
		t.Errorf("p99 is %v", got)
	}
	if got := percentile(nil, 99); got != 0 {
		t.Errorf("of none it is %v", got)
	}
}

func TestAPassIsDoneWhenEachKeyIs(t *testing.T) {
	j := newJob(Latency, &rest.Config{}, 3, 1)
	done := func() bool {
		select {
		case <-j.all:
			return true
		default:
			return false
		}
	}
	for _, i := range []int{0, 1, 1, 0} {
		if j.Done(NameOf(i)); done() {
			t.Fatal("it is done without the last")
		}
	}
	f := &foo.Foo{}
	f.Name = NameOf(2)
	if j.Saw(f); !done() {
		t.Error("it is not done")
	}
	j.begin(2)
	for i := range 3 {
		j.Done(NameOf(i))
	}
	if !done() {
		t.Error("the second is not done")
	}
}
