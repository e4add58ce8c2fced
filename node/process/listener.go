package process

import (
	"sync"
	"time"
)

const (
	// maxUnheard is how many pieces of output a listener may be behind, of maxLine
	// bytes at most.
	maxUnheard = 32
	// stalls is how long output waits for a listener that is that far behind, and so
	// the container with it, before the listener hears no more.
	stalls = 10 * time.Second
)

// piece is some output.
type piece struct {
	stream string
	data   []byte
}

// listener hears what a container writes from some point on.
type listener struct {
	pieces chan piece    // closed when there is no more
	gone   chan struct{} // closed by who listens
	cut    chan struct{} // closed when it was too far behind
}

// audience is who listens to a container.
type audience struct {
	mu     sync.Mutex
	closed bool
	all    map[*listener]bool
}

func (a *audience) join() *listener {
	l := &listener{pieces: make(chan piece, maxUnheard), gone: make(chan struct{}), cut: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		close(l.pieces)
		return l
	}
	if a.all == nil {
		a.all = map[*listener]bool{}
	}
	a.all[l] = true
	return l
}

func (a *audience) leave(l *listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, l)
	close(l.gone)
}

// drop ends a listener that does not listen.
func (a *audience) drop(l *listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all[l] { // another stream may have been first
		delete(a.all, l)
		close(l.cut)
	}
}

// close is called when nobody writes any more.
func (a *audience) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for l := range a.all {
		close(l.pieces)
	}
	a.all = nil
}

// of is a writer for one stream, which never fails.
func (a *audience) of(stream string) speaker { return speaker{a, stream} }

type speaker struct {
	to     *audience
	stream string
}

func (s speaker) Write(p []byte) (int, error) {
	s.to.mu.Lock()
	all := make([]*listener, 0, len(s.to.all))
	for l := range s.to.all {
		all = append(all, l)
	}
	s.to.mu.Unlock()
	if len(all) == 0 {
		return len(p), nil
	}
	next := piece{s.stream, append([]byte(nil), p...)}
	for _, l := range all {
		s.tell(l, next)
	}
	return len(p), nil
}

// tell waits for a listener if it must.
func (s speaker) tell(l *listener, p piece) {
	select {
	case l.pieces <- p:
		return
	default:
	}
	late := time.NewTimer(stalls)
	defer late.Stop()
	select {
	case l.pieces <- p:
	case <-l.gone:
	case <-l.cut:
	case <-late.C:
		s.to.drop(l)
	}
}
