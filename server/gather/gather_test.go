package gather_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
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
	write("a")
	c.Hold()
	c.Hold() // once is enough
	write("b")
	write("c")
	if got := strings.Join(r.writes, "|"); got != "a" {
		t.Errorf("before: %s", got)
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	write("d")
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.writes, "|"); got != "a|bc|d" {
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
