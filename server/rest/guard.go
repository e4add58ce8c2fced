package rest

import (
	"net/http"
	"sync"
	"time"

	"github.com/even-keel/evenkeel/server/gather"
)

const (
	// writeTimeout is how long a client may take to read what is sent at once.
	writeTimeout = time.Minute
	// holdAtMost is how long output is held while it is written. It takes longer
	// only if the client has to make room first, which it may not know without
	// what is held.
	holdAtMost = 4 * time.Millisecond
)

// guard watches over a stream while it is written to: its connection gathers what
// is sent, but not for long, and a client that does not read is left after a while.
// A deadline would do the latter, but with HTTP/2 that is a message to another
// goroutine to set it, and one to take it back.
type guard struct {
	conn    *gather.Conn
	control *http.ResponseController

	mu     sync.Mutex
	writes bool
	holds  bool
	begun  time.Time
	timer  *time.Timer
}

// begin is called before a write, once or more often.
func (g *guard) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writes {
		return
	}
	g.conn.Hold()
	g.writes, g.holds, g.begun = true, true, time.Now()
	if g.timer == nil {
		g.timer = time.AfterFunc(holdAtMost, g.timeout)
		return
	}
	g.timer.Reset(holdAtMost)
}

// end is called when all is written, and sends what is held. After it the guard
// does nothing more.
func (g *guard) end() error {
	err := g.release()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writes {
		g.timer.Stop()
		g.writes = false
	}
	return err
}

func (g *guard) release() error {
	g.mu.Lock()
	holds := g.holds
	g.holds = false
	g.mu.Unlock()
	if !holds {
		return nil
	}
	return g.conn.Release()
}

// timeout lets go of what is held, and at last of the client. It may come late,
// when the write that it was meant for is over.
func (g *guard) timeout() {
	g.mu.Lock()
	if !g.writes {
		g.mu.Unlock()
		return
	}
	if left := writeTimeout - time.Since(g.begun); left > 0 {
		g.timer.Reset(left)
		g.mu.Unlock()
		_ = g.release() // the connection keeps its failure for the next write
		return
	}
	defer g.mu.Unlock() // so that the handler does not end meanwhile
	g.conn.Interrupt()
	_ = g.control.SetWriteDeadline(time.Unix(1, 0))
}
