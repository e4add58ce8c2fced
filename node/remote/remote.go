// Package remote speaks the protocols by which clients run commands in containers and
// reach the ports of pods: SPDY/3.1 and WebSockets, as kubectl and client-go have them.
//
// A request is upgraded, and its connection carries several streams from then on.
// [Command] serves one command or terminal, [Ports] any number of connections to
// ports. Both return when nothing of theirs runs any more, and end what they serve
// when the client leaves. How they find that out: by reading, and, while nobody takes
// what the client sends, by writing something of no meaning every second.
package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
)

// Streams are what a command is connected to. Those that nobody wants are nil.
type Streams struct {
	// Stdin ends when the client says so. Who has it closes it when it reads no more,
	// which ends a Read of another goroutine.
	Stdin          io.ReadCloser
	Stdout, Stderr io.Writer
	// TTY asks for a terminal. It has no Stderr.
	TTY bool
	// Sizes are those of the client's terminal, the newest only; nil without a TTY. It
	// is never closed.
	Sizes <-chan Size
}

// Size is how large a terminal is, in characters.
type Size struct{ Width, Height uint16 }

// ExitError is the end of a command that did not end well.
type ExitError struct{ Code int32 }

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// Want is which streams a client asks for.
type Want struct{ Stdin, Stdout, Stderr, TTY bool }

// WantOf reads what a client asks for, by the names that the kubelet has.
func WantOf(q url.Values) (Want, error) {
	is := func(name string) bool { v := q.Get(name); return v == "1" || v == "true" }
	w := Want{Stdin: is("input"), Stdout: is("output"), Stderr: is("error"), TTY: is("tty")}
	if w.TTY { // all that a terminal shows is one stream
		w.Stderr = false
	}
	if !w.Stdin && !w.Stdout && !w.Stderr {
		return w, fmt.Errorf("you must specify at least 1 of stdin, stdout, stderr")
	}
	return w, nil
}

const (
	// opensWithin is how long a client may take to open its streams.
	opensWithin = 30 * time.Second
	// beatEvery is how often something is written to see whether the client is there.
	beatEvery = time.Second
	// lingers is how long a client may take to leave once all is said. To close before
	// it does could cost it what it has not read.
	lingers = 30 * time.Second
	// cutAfter is how long a connection is kept once there is no more reason to.
	cutAfter = time.Second
	// chunk is how much is sent at once.
	chunk = 32 << 10
)

// Command upgrades a request, has run do what it asks for, and tells the client how
// that ended. The context of run ends when the client leaves or the request's does. A
// request that cannot be upgraded is answered with an error, and run is not called.
func Command(w http.ResponseWriter, r *http.Request, want Want, run func(context.Context, Streams) error) {
	accept := acceptSPDY
	if websocket.IsWebSocketUpgrade(r) {
		accept = acceptSocket
	}
	if s := accept(w, r, want); s != nil {
		s.serve(r.Context(), want, run)
	}
}

// refuse answers a request that is not upgraded.
func refuse(w http.ResponseWriter, code int, format string, args ...any) {
	http.Error(w, "unable to upgrade: "+fmt.Sprintf(format, args...), code)
}

// choose returns the first protocol of the client that is known.
func choose(client, known []string) (string, bool) {
	for _, c := range client {
		for _, k := range known {
			if c == k {
				return c, true
			}
		}
	}
	return "", false
}
