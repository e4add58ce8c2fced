package h2

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"testing"

	"golang.org/x/net/http2"
)

// frame reads until there is one of a kind.
func frame[F http2.Frame](c raw) F {
	c.t.Helper()
	for {
		f, err := c.ReadFrame()
		c.must(err)
		if f, ok := f.(F); ok {
			return f
		}
	}
}

// A client makes such requests again elsewhere, and not those that were refused.
func TestRequestsThatComeTooLateAreNotLookedAt(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	s, _ := serve(t, func(http.ResponseWriter, *http.Request) { close(begun); <-finish })
	c := dialRaw(t, s)
	c.get(1, true)
	<-begun
	var stop sync.WaitGroup
	defer stop.Wait()
	stop.Go(func() { _ = s.Config.Shutdown(context.Background()) })
	if f := frame[*http2.GoAwayFrame](c); f.LastStreamID != 1 {
		t.Error(f)
	}
	c.get(3, false)
	c.must(c.WriteData(3, true, []byte("x")))
	c.get(5, true, "X-Upper", "is wrong")
	c.must(c.WritePing(false, [8]byte{}))
	for acked := false; !acked; {
		f, err := c.ReadFrame()
		c.must(err)
		if f.Header().Type == http2.FrameRSTStream {
			t.Error(f)
		}
		_, acked = f.(*http2.PingFrame)
	}
	close(finish)
	defer func() { _ = c.conn.Close() }() // which the server waits for
	if f := frame[*http2.GoAwayFrame](c); f.LastStreamID != 1 {
		t.Error(f)
	}
}

func TestTheLastOfSeveralSettingsHolds(t *testing.T) {
	s, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 20)) })
	c := dialRaw(t, s)
	window := func(size uint32) http2.Setting {
		return http2.Setting{ID: http2.SettingInitialWindowSize, Val: size}
	}
	c.must(c.WriteSettings(window(1), window(100), window(7)))
	c.get(1, true)
	if f := frame[*http2.DataFrame](c); len(f.Data()) != 7 {
		t.Errorf("%d bytes", len(f.Data()))
	}
}

// The end of a stream takes no room, be it that there is less than none.
func TestAnEndNeedsNoWindow(t *testing.T) {
	c := &conn{open: 1}
	s := &stream{c: c, window: -1}
	if room, err := s.takeAll(0, true); !room || err != nil || c.open != 0 {
		t.Errorf("%v, %v, %d open", room, err, c.open)
	}
}

// Who reads a body when its handler has returned must start nobody: run may be
// waiting for the last one.
func TestNobodyRepliesOnceAConnectionHasEnded(t *testing.T) {
	var c conn
	var out bytes.Buffer
	c.w.replies.f = http2.NewFramer(&out, nil)
	c.w.stopReplies()
	c.reply((*http2.Framer).WriteSettingsAck)
	if c.w.replies.sending || out.Len() > 0 {
		t.Error("a reply is sent")
	}
}
