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
		for i := range 3_000 {
			_ = control.SetReadDeadline(time.Now().Add(time.Duration(i%500) * time.Nanosecond))
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

// starving is a connection without a window, and streams that wait for some of it.
func starving(t *testing.T, streams int) (*conn, chan uint32) {
	c, fed := &conn{streams: map[uint32]*stream{}}, make(chan uint32, streams)
	for id := range uint32(streams) {
		s := &stream{c: c, id: id, moved: sync.NewCond(&c.mu), window: 100, cancel: func() {}}
		c.streams[id] = s
		go func() {
			if n, err := s.take(10, false); err == nil && n == 10 {
				fed <- id
			}
		}()
	}
	synctest.Wait()
	if c.starving != streams {
		t.Errorf("%d wait", c.starving)
	}
	return c, fed
}

func (c *conn) endAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.streams {
		s.endLocked(http.ErrAbortHandler)
	}
}

func TestAllGetOfTheConnectionsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fed := starving(t, 5)
		for _, step := range []struct {
			more uint32
			fed  int
		}{{10, 1}, {20, 3}, {100, 5}} {
			if err := c.widen(&http2.WindowUpdateFrame{Increment: step.more}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if len(fed) != step.fed || c.starving != 5-step.fed {
				t.Errorf("%d have got some, %d wait; want %d", len(fed), c.starving, step.fed)
			}
		}
	})
}

// What a stream was woken for and does not take is for the next.
func TestAStreamThatIsOverLeavesTheWindowToOthers(t *testing.T) {
	for name, lose := range map[string]func(s *stream){
		"ended":             func(s *stream) { s.endLocked(http.ErrAbortHandler) },
		"its own is closed": func(s *stream) { s.window = 0 },
		"too late for it":   func(s *stream) { s.writeBy = time.Unix(1, 0); s.window = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, fed := starving(t, 2)
				defer c.endAll()
				c.mu.Lock()
				c.window = 10
				c.feedLocked()
				for _, s := range c.streams {
					if !s.starves {
						lose(s)
					}
				}
				c.mu.Unlock()
				synctest.Wait()
				if len(fed) != 1 {
					t.Error("nobody has got it")
				}
			})
		})
	}
}
