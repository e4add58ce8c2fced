package remote

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"sync"
	"time"
)

// session is a client that is connected, by either protocol.
type session struct {
	conn net.Conn
	work sync.WaitGroup // what reads from the client
	gone chan struct{}  // closed when nothing more comes from it

	stdin          *io.PipeReader // nil if it is not wanted
	stdout, stderr io.Writer
	sizes          io.Reader // JSON, one after another; nil if there are none

	// beat writes something of no meaning.
	beat func() error
	// end tells the client how it ended, and that nothing more comes.
	end func(error)
}

// serve runs what the client asked for, and sees the client off.
func (s *session) serve(ctx context.Context, want Want, run func(context.Context, Streams) error) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		defer cancel()
		select {
		case <-s.gone:
		case <-ctx.Done():
		}
	})
	watching.Go(func() { keepAlive(ctx, s.beat, cancel) })
	stop := context.AfterFunc(ctx, func() { s.closeAfter(cutAfter) })
	defer stop()

	err := run(ctx, s.streams(want))
	if s.stdin != nil {
		_ = s.stdin.Close()
	}
	defer s.closeAfter(lingers).Stop()
	s.end(err)
	<-s.gone
	_ = s.conn.Close()
	s.work.Wait()
}

// closeAfter closes the connection some time later, whatever is being read or written.
func (s *session) closeAfter(d time.Duration) *time.Timer {
	return time.AfterFunc(d, func() { _ = s.conn.Close() })
}

func (s *session) streams(want Want) Streams {
	out := Streams{Stdout: s.stdout, Stderr: s.stderr, TTY: want.TTY}
	if s.stdin != nil {
		out.Stdin = s.stdin
	}
	if s.sizes != nil && want.TTY {
		sizes := make(chan Size, 1)
		s.work.Go(func() { readSizes(s.sizes, sizes) })
		out.Sizes = sizes
	}
	return out
}

// readSizes hands on sizes, the newest in the place of one that nobody took.
func readSizes(from io.Reader, to chan Size) {
	for all := json.NewDecoder(from); ; {
		var next Size
		if all.Decode(&next) != nil {
			break
		}
		select {
		case <-to:
		default:
		}
		to <- next
	}
	_, _ = io.Copy(io.Discard, from) // what is no size must not hold up the rest
}

// keepAlive calls beat until ctx ends, or gone if the client is found to have left.
func keepAlive(ctx context.Context, beat func() error, gone func()) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if beat() != nil {
				gone()
				return
			}
		}
	}
}
