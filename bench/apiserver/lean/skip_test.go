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

func TestWhatIsSkippedIsCountedAndTheRestRead(t *testing.T) {
	const events, size = 5000, 100
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
	defer close(next)
	stream, err := c.Stream(get("/"))
	if err != nil {
		t.Fatal(err)
	}
	tape, err := c.Tape(1 << 20)
	if err != nil {
		t.Fatal(err)
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
	tape.Skip()
	for left := events; left > 0; left -= 100 {
		next <- 100
	}
	recorded(t, tape, func() bool { return tape.Payload() >= events*size && time.Since(tape.Last()) > 100*time.Millisecond })
	skipped := tape.Payload()
	tape.Keep()
	if ready, err := tape.Resume(c); ready || err != nil {
		t.Errorf("with no record: %v, %v", ready, err)
	}
	next <- 3
	recorded(t, tape, func() bool {
		ready, err := tape.Resume(c)
		if err != nil {
			t.Fatal(err)
		}
		return ready
	})
	if got := lines(); got != 3 {
		t.Errorf("%d lines of 3", got)
	}
	over := tape.Payload() - (events+3)*size
	if perChunk := int64(8); over < 51*perChunk || over > 400*perChunk {
		t.Errorf("%d bytes more than events, of %d skipped", over, skipped)
	}
}
