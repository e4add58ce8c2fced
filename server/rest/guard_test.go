package rest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/even-keel/evenkeel/server/gather"
)

// deadlines is an answer that counts the deadlines set on it.
type deadlines struct {
	http.ResponseWriter
	set atomic.Int64
}

func (d *deadlines) SetWriteDeadline(time.Time) error {
	d.set.Add(1)
	return nil
}

func TestAGuardHoldsNotForLongAndLeavesWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, ours := net.Pipe()
		conn := &gather.Conn{Conn: ours}
		answer := &deadlines{ResponseWriter: httptest.NewRecorder()}
		g := &guard{conn: conn, control: http.NewResponseController(answer)}
		got := make(chan string, 10)
		go func() {
			for buf := make([]byte, 100); ; {
				n, err := client.Read(buf)
				if err != nil {
					close(got)
					return
				}
				got <- string(buf[:n])
			}
		}()
		g.begin()
		g.begin() // once is enough
		_, _ = conn.Write([]byte("a"))
		_, _ = conn.Write([]byte("b"))
		time.Sleep(holdAtMost - time.Nanosecond)
		synctest.Wait()
		if len(got) != 0 {
			t.Error("nothing was held")
		}
		time.Sleep(time.Nanosecond)
		if what := <-got; what != "ab" {
			t.Errorf("got %q", what)
		}
		time.Sleep(writeTimeout / 2)
		if err := g.end(); err != nil {
			t.Error(err)
		}
		g.begin() // another write, with a time of its own
		time.Sleep(writeTimeout - time.Nanosecond)
		synctest.Wait()
		if answer.set.Load() != 0 {
			t.Error("the client was left too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if answer.set.Load() == 0 {
			t.Error("the client was not left")
		}
		_ = g.end()
		time.Sleep(2 * writeTimeout)
		if answer.set.Load() != 1 {
			t.Error("the guard did not end")
		}
		_ = ours.Close()
		for range got {
		}
	})
}
