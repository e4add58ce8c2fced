package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/remote"
)

var errTooSlow = fmt.Errorf("the output was not read for %s", stalls)

// Exec runs a command beside a container's process; see [node.Interactive].
func (r *Runtime) Exec(ctx context.Context, id node.PodID, name string, command []string, s remote.Streams) error {
	c, err := r.running(id, name)
	if err != nil {
		return err
	}
	t, err := c.newTask(command)
	if err != nil {
		return err
	}
	return t.run(ctx, s)
}

// Attach connects to a container's process; see [node.Interactive].
func (r *Runtime) Attach(ctx context.Context, id node.PodID, name string, s remote.Streams) error {
	c, err := r.running(id, name)
	if err != nil {
		return err
	}
	l := c.logs.audience.join()
	defer c.logs.audience.leave(l)
	within, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	if s.Stdin != nil {
		defer func() { _ = s.Stdin.Close() }()
		work.Go(func() { c.feed(within, s.Stdin) })
	}
	if s.TTY && c.terminal {
		work.Go(func() { follow(c.stdin, s.Sizes, within.Done()) })
	}
	return c.listen(ctx, l, s)
}

// listen writes what the container does, until it or ctx ends.
func (c *container) listen(ctx context.Context, l *listener, s remote.Streams) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.cut:
			return errTooSlow
		case p, more := <-l.pieces:
			if !more {
				return nil
			}
			to := s.Stdout
			if p.stream == "stderr" {
				to = s.Stderr
			}
			if to == nil {
				continue
			}
			if _, err := to.Write(p.data); err != nil {
				return err
			}
		}
	}
}

// feed copies to the container's process until ctx ends. The input of one that takes
// only one is closed after it.
func (c *container) feed(ctx context.Context, from io.ReadCloser) {
	defer func() { _ = from.Close() }()
	if c.stdin == nil || !c.spec.Stdin {
		return
	}
	buffer := make([]byte, maxLine)
	for {
		n, err := from.Read(buffer)
		if n > 0 && c.write(ctx, buffer[:n]) != nil {
			break
		}
		if err != nil {
			break
		}
	}
	switch {
	case !c.spec.StdinOnce:
	case c.terminal:
		_ = c.write(context.Background(), []byte{endOfText})
	default:
		_ = c.stdin.Close()
	}
}

// write writes to the container's process, of several who do one at a time.
func (c *container) write(ctx context.Context, p []byte) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
		return node.ErrUnknownContainer
	}
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cut)
		_ = c.stdin.SetWriteDeadline(time.Now())
	})
	_, err := c.stdin.Write(p)
	if !stop() {
		<-cut
		_ = c.stdin.SetWriteDeadline(time.Time{}) // the next one may write again
	}
	return err
}

// Dial connects to a port of a pod: of this machine, as all pods have its network.
func (r *Runtime) Dial(ctx context.Context, id node.PodID, port int32) (net.Conn, error) {
	if r.find(id) == nil {
		return nil, fmt.Errorf("%s: %w", id.Key, node.ErrUnknownPod)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
}
