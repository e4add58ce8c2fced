//go:build linux

package lean

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// recorded records until a condition holds.
func recorded(t *testing.T, tape *Tape, until func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !until(); time.Sleep(time.Millisecond) {
		if _, err := tape.Record(); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("it did not come")
		}
	}
}

func TestATapeIsReadLater(t *testing.T) {
	const events, size = 500, 100
	line := strings.Repeat("x", size-1) + "\n"
	next := make(chan int)
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		flush := http.NewResponseController(w).Flush
		for _ = flush(); ; _ = flush() {
			n, more := <-next
			if !more {
				return
			}
			_, _ = io.WriteString(w, strings.Repeat(line, n))
		}
	})
	stream, err := c.Stream(get("/"))
	if err != nil {
		t.Fatal(err)
	}
	tape, err := c.Tape(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tape(1); err == nil {
		t.Error("a second tape was made")
	}
	lines := func() (n int) {
		for {
			more, err := stream.Lines()
			if n += more; errors.Is(err, ErrDry) {
				return n
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	lines()
	if err := tape.Rewind(nil); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, events - 1} {
		next <- n
	}
	recorded(t, tape, func() bool { return tape.Payload() >= events*size })
	if err := tape.Rewind(nil); err == nil {
		t.Error("a tape that was not read was rewound")
	}
	if got := lines(); got != events {
		t.Errorf("%d lines of %d", got, events)
	}
	if over := tape.Payload() - events*size; over > 1000 {
		t.Errorf("%d bytes too many", over)
	}
	if err := tape.Rewind(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	next <- 10
	time.Sleep(10 * time.Millisecond)
	for err = nil; err == nil; _, err = tape.Record() {
	}
	if !strings.Contains(err.Error(), "more than the 100 bytes") {
		t.Errorf("a full tape: %v", err)
	}
	close(next)
}
