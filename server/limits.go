package server

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits bound what clients can take of the server.
type Limits struct {
	// InFlight is how many requests are worked on at once, watches apart.
	InFlight int
	// WatchesPerClient is how many watches one address may hold.
	WatchesPerClient int
	// BodyWithin is how long a client may take to send a request.
	BodyWithin time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.InFlight == 0 {
		l.InFlight = 600
	}
	if l.WatchesPerClient == 0 {
		l.WatchesPerClient = 20_000
	}
	if l.BodyWithin == 0 {
		l.BodyWithin = time.Minute
	}
	return l
}

// gate counts what is under way.
type gate struct {
	limits Limits

	mu       sync.Mutex
	inFlight int
	watches  map[string]int
}

func newGate(l Limits) *gate { return &gate{limits: l, watches: map[string]int{}} }

// enter lets a request in, unless there are too many. Call leave when it ends.
func (g *gate) enter(r *http.Request, watching bool) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !watching {
		if g.inFlight >= g.limits.InFlight {
			return nil, false
		}
		g.inFlight++
		return g.leave, true
	}
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	if g.watches[client] >= g.limits.WatchesPerClient {
		return nil, false
	}
	g.watches[client]++
	return func() { g.leaveWatch(client) }, true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
}

func (g *gate) leaveWatch(client string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.watches[client]--; g.watches[client] == 0 {
		delete(g.watches, client)
	}
}
