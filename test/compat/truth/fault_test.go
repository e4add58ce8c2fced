package truth

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// fault is what is done to one request. The zero fault does nothing.
type fault struct {
	name string
	// before delays the request.
	before time.Duration
	// code is an answer of the proxy's own.
	code int
	// unheard resets the connection before the server hears of the request.
	unheard bool
	// twice sends the request on two connections; the client gets the answer of
	// one, and the other is dropped in the middle.
	twice bool
	// end ends the answer after some bytes: errEnd as if it were complete, errCut
	// by a reset of the connection, errAbort by a reset of the answer alone.
	end error
	// ghost lets the server's side of an answer that was cut live on: a watch that
	// nobody hears, beside the one that the client begins instead.
	ghost bool
	// expire ends a watch after some events with an error event of 410.
	expire bool
	// dribble sends few bytes at a time, with a pause after each.
	dribble time.Duration
	// stall stops the answer after some bytes, for a time.
	stall time.Duration
	bytes int64
}

var (
	errEnd   = errors.New("ended by the proxy")
	errCut   = errors.New("cut by the proxy")
	errAbort = errors.New("aborted by the proxy")
)

// reasons are those of the answers that the proxy gives. None asks to come back
// later: an informer that is asked to does, and is right not to be there in 1 s.
var reasons = map[int]string{
	410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}

// nobody hears what the proxy's server complains of: it is what tests are about.
var nobody = log.New(io.Discard, "", 0)

// newFault draws one; three of eight requests pass unharmed.
func newFault(r *rand.Rand, of *http.Request) fault {
	soon := func(ms int) time.Duration { return time.Duration(1+r.IntN(ms)) * time.Millisecond }
	f := fault{bytes: r.Int64N(4000)}
	query := of.URL.Query()
	switch n := r.IntN(40); {
	case n < 15:
		return fault{}
	case n < 17:
		f.name, f.unheard = "cut before it is heard", true
	case n < 19:
		f.name, f.end = "cut", errCut
	case n < 21:
		f.name, f.end = "answer aborted", errAbort
	case n < 22:
		f.name, f.end = "answer ended early", errEnd
	case n < 24:
		f.name, f.end, f.ghost = "cut, and lives on at the server", errCut, true
	case n < 27:
		f.name, f.twice = "sent twice", true
	case n < 29:
		f.name, f.before = "request delayed", soon(40)
	case n < 31:
		f.name, f.dribble = "answer in driblets", soon(3)
	case n < 33:
		f.name, f.stall = "answer stalled", soon(60)
	case n < 36:
		if query.Get("resourceVersion") == "" && query.Get("continue") == "" {
			return fault{}
		}
		f.name, f.code = "410", http.StatusGone
	case n < 38:
		if query.Get("watch") != "true" {
			return fault{}
		}
		f.name, f.expire, f.bytes = "410 in the watch", true, r.Int64N(12)
	default:
		f.name, f.code = "429 or 5xx", []int{429, 500, 503, 504}[r.IntN(4)]
	}
	return f
}

// passage is the way of an answer's bytes to the client.
type passage struct {
	p     *proxy
	f     fault
	w     http.ResponseWriter
	r     *http.Request
	flush func() error
	// left is how many bytes there are until the fault.
	left int64
}

// Write passes bytes on until the fault's place is reached.
func (g *passage) Write(b []byte) (n int, err error) {
	for n < len(b) {
		piece := b[n:]
		harm := !g.p.isHealed()
		switch {
		case !harm:
		case g.f.dribble > 0:
			piece = piece[:min(len(piece), 97)]
		case g.f.end != nil || g.f.stall > 0:
			if g.left == 0 {
				if g.f.end != nil {
					return n, g.f.end
				}
				g.p.pause(g.r.Context(), g.f.stall)
				g.left = -1
			}
			if g.left > 0 {
				piece = piece[:min(int64(len(piece)), g.left)]
			}
		}
		wrote, err := g.w.Write(piece)
		n += wrote
		if g.left > 0 {
			g.left -= int64(wrote)
		}
		if err == nil {
			err = g.flush()
		}
		if err != nil {
			return n, err
		}
		if harm && g.f.dribble > 0 {
			g.p.pause(g.r.Context(), g.f.dribble)
		}
	}
	return n, nil
}

// passFrames passes some events of a watch on, and then an error event.
func (g *passage) passFrames(resp *http.Response) error {
	proto := strings.Contains(resp.Header.Get("Content-Type"), "protobuf")
	next := jsonFrames(resp.Body)
	if proto {
		next = func() ([]byte, error) { return protoFrame(resp.Body) }
	}
	g.left = -1
	for range g.f.bytes {
		frame, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := g.Write(frame); err != nil {
			return err
		}
	}
	frame, err := expired(proto)
	if err != nil {
		return err
	}
	_, err = g.Write(frame)
	return err
}

// protoFrame reads an event with its length.
func protoFrame(from io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	frame := append(head, make([]byte, binary.BigEndian.Uint32(head))...)
	_, err := io.ReadFull(from, frame[4:])
	return frame, err
}

// jsonFrames returns a function that reads an event.
func jsonFrames(from io.Reader) func() ([]byte, error) {
	decoder := json.NewDecoder(from)
	return func() ([]byte, error) {
		var frame json.RawMessage
		err := decoder.Decode(&frame)
		return append(frame, '\n'), err
	}
}

// expired is the event of a server that has forgotten the watch's revision.
func expired(proto bool) ([]byte, error) {
	status := &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410, Message: "by the proxy"}
	event := metav1.WatchEvent{Type: "ERROR"}
	if !proto {
		status.Kind, status.APIVersion = "Status", "v1"
		event.Object.Object = status
		frame, err := json.Marshal(event)
		return append(frame, '\n'), err
	}
	raw, err := status.Marshal()
	if err != nil {
		return nil, err
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Status"}, Raw: raw}
	if raw, err = envelope.Marshal(); err != nil {
		return nil, err
	}
	event.Object.Raw = append([]byte("k8s\x00"), raw...)
	frame, err := event.Marshal()
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...), err
}
