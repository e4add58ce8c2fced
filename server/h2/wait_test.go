package h2

import (
	"errors"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// A deadline that passes before the wait for it has begun ends it as well.
func TestEveryDeadlineEndsARead(t *testing.T) {
	s, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		for i := range 10_000 {
			_ = control.SetReadDeadline(time.Now().Add(time.Duration(i%1000) * time.Nanosecond))
			if _, err := r.Body.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("read %d: %v", i, err)
				return
			}
		}
	})
	c := dialRaw(t, s)
	c.get(1, false)
	if code, _, _ := c.until(1); code != 0 {
		t.Error(code)
	}
}

// The end that a client sees is not that of a whole answer, though it has made room
// for it meanwhile.
func TestAnAnswerThatIsLateIsBrokenOff(t *testing.T) {
	late, roomy := make(chan error, 1), make(chan struct{})
	s, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Next") != "" {
			close(roomy)
			return
		}
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(time.Millisecond))
		_, err := w.Write(make([]byte, 100_000))
		late <- err
		<-roomy
	})
	c := dialRaw(t, s)
	c.get(1, true)
	if err := <-late; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	c.must(c.WriteWindowUpdate(0, 100_000))
	c.must(c.WriteWindowUpdate(1, 100_000))
	c.get(3, true, "x-next", "1") // begins when the windows have been read
	if code, reset, _ := c.until(1); !reset || code != http2.ErrCodeCancel {
		t.Errorf("%v, reset: %v", code, reset)
	}
}

func TestToCloseABodyEndsItsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &conn{}
		b := body{&stream{c: c, moved: sync.NewCond(&c.mu)}}
		var reader sync.WaitGroup
		reader.Go(func() {
			if _, err := b.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Error(err)
			}
		})
		synctest.Wait()
		_ = b.Close()
		reader.Wait()
	})
}
