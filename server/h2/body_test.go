package h2

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
)

// What a handler has read without an error it takes for the whole.
func TestABodyThatIsNotWholeDoesNotLookSo(t *testing.T) {
	for name, end := range map[string]func(c raw){
		"short":                    func(c raw) { c.must(c.WriteData(1, true, []byte("xx"))) },
		"short, with trailers":     func(c raw) { c.must(c.WriteData(1, false, []byte("xx"))); c.trailers(1) },
		"long":                     func(c raw) { c.must(c.WriteData(1, true, []byte("xxxx"))) },
		"taken back":               func(c raw) { c.must(c.WriteRSTStream(1, http2.ErrCodeCancel)) },
		"taken back and then over": func(c raw) { c.must(c.WriteRSTStream(1, http2.ErrCodeCancel)); c.trailers(1) },
		"cut":                      func(c raw) { _ = c.conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			begun, ended, got := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			s, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				close(begun)
				<-r.Context().Done()
				<-ended
				_, err := io.ReadAll(r.Body)
				got <- err
			})
			c := dialRaw(t, s)
			c.get(1, false, "content-length", "3")
			<-begun
			end(c)
			close(ended)
			if err := <-got; err == nil || errors.Is(err, io.EOF) {
				t.Error(err)
			}
		})
	}
}

func TestABodyIsNotAskedForInTheMidstOfItsAnswer(t *testing.T) {
	s, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		echo(w, r)
	})
	c := dialRaw(t, s)
	c.get(1, false, "expect", "100-continue")
	c.must(c.WriteData(1, true, []byte("x")))
	heads := 0
	for {
		f, err := c.ReadFrame()
		c.must(err)
		if f.Header().Type == http2.FrameHeaders {
			heads++
		}
		if f, ok := f.(*http2.DataFrame); ok && f.StreamEnded() {
			break
		}
	}
	if heads != 1 {
		t.Errorf("%d heads", heads)
	}
}
