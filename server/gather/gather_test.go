package gather_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/even-keel/evenkeel/server/gather"
)

// recorder is a connection that keeps its writes apart.
type recorder struct {
	net.Conn
	writes []string
	err    error
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	r.writes = append(r.writes, string(p))
	return len(p), nil
}

func TestWritesAreHeldUntilReleased(t *testing.T) {
	r := &recorder{}
	c := &gather.Conn{Conn: r}
	write := func(s string) {
		t.Helper()
		if n, err := io.WriteString(c, s); n != len(s) || err != nil {
			t.Fatalf("wrote %d: %v", n, err)
		}
	}
	release := func() {
		t.Helper()
		if err := c.Release(); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	c.Hold()
	c.Hold() // somebody else
	write("b")
	write("c")
	if got := strings.Join(r.writes, "|"); got != "a" {
		t.Errorf("before: %s", got)
	}
	release()
	write("d")
	write("e")
	release()
	write("f")
	release() // once too often
	if got := strings.Join(r.writes, "|"); got != "a|bc|de|f" {
		t.Errorf("after: %s", got)
	}
}

func TestWhatIsHeldIsBoundedAndInOrder(t *testing.T) {
	r := &recorder{}
	c := &gather.Conn{Conn: r}
	c.Hold()
	var want bytes.Buffer
	for i, n := range []int{10, 40 << 10, 40 << 10, 200 << 10, 7, 64 << 10, 1} {
		part := bytes.Repeat([]byte{byte('a' + i)}, n)
		want.Write(part)
		if _, err := c.Write(part); err != nil {
			t.Fatal(err)
		}
		if held := want.Len() - len(strings.Join(r.writes, "")); held > 64<<10 {
			t.Errorf("holds %d bytes", held)
		}
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.writes, ""); got != want.String() {
		t.Errorf("got %d bytes, want %d in order", len(got), want.Len())
	}
}

func TestAFailedWriteIsToldOnRelease(t *testing.T) {
	gone := errors.New("gone")
	c := &gather.Conn{Conn: &recorder{err: gone}}
	c.Hold()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := c.Release(); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	c.Hold()
	if _, err := c.Write(make([]byte, 1<<20)); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestTheContextKnowsTheConnection(t *testing.T) {
	inner := &gather.Conn{Conn: &recorder{}}
	for name, conn := range map[string]net.Conn{"plain": inner, "TLS": tls.Server(inner, &tls.Config{})} {
		if got := gather.Of(gather.Context(context.Background(), conn)); got != inner {
			t.Errorf("%s: %v", name, got)
		}
	}
	none := gather.Of(gather.Context(context.Background(), &recorder{}))
	none.Hold()
	if err := none.Release(); err != nil || none != nil {
		t.Errorf("a connection of another kind: %v, %v", none, err)
	}
}

func TestAnInterruptedWriteFails(t *testing.T) {
	client, stuck := net.Pipe() // nobody reads
	defer func() { _ = client.Close() }()
	c := &gather.Conn{Conn: stuck}
	c.Interrupt() // nothing to interrupt: the connection stays good
	c.Hold()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- c.Release() }()
	for {
		select {
		case err := <-failed:
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			return
		default:
			c.Interrupt()
		}
	}
}
