package informer_test

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// wire is a transport in front of the server that tests can break: it answers in
// place of the server, and cuts the connections that are open.
type wire struct {
	next http.RoundTripper

	mu     sync.Mutex
	answer func(*http.Request) (*http.Response, error)
	bodies map[*cuttable]struct{}
	seen   []string
}

func (w *wire) through(next http.RoundTripper) http.RoundTripper {
	w.next = next
	w.bodies = map[*cuttable]struct{}{}
	return w
}

// answers has a function answer; where it returns nothing, the server does.
func (w *wire) answers(f func(*http.Request) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = f
}

// requests returns the requests that were sent since the last call.
func (w *wire) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

// cut breaks the answers that are being read.
func (w *wire) cut(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for b := range w.bodies {
		b.fail(err)
	}
	clear(w.bodies)
}

var errReset = errors.Join(errors.New("cut by the test"), syscall.ECONNRESET)

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	answer := w.answer
	w.seen = append(w.seen, r.Method+" "+r.URL.RequestURI())
	w.mu.Unlock()
	if answer != nil {
		if resp, err := answer(r); resp != nil || err != nil {
			if resp != nil {
				resp.Request = r
			}
			return resp, err
		}
	}
	resp, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	b := newCuttable(resp.Body)
	resp.Body = b
	w.mu.Lock()
	w.bodies[b] = struct{}{}
	w.mu.Unlock()
	return resp, nil
}

// cuttable is a body that can be cut, also while it is being read.
type cuttable struct {
	pipe *io.PipeReader
	from io.ReadCloser
	to   *io.PipeWriter
}

func newCuttable(from io.ReadCloser) *cuttable {
	r, w := io.Pipe()
	c := &cuttable{pipe: r, from: from, to: w}
	go func() {
		_, err := io.Copy(w, from)
		_ = w.CloseWithError(err) // nil is the end
	}()
	return c
}

func (c *cuttable) Read(p []byte) (int, error) { return c.pipe.Read(p) }

func (c *cuttable) Close() error {
	_ = c.pipe.Close()
	return c.from.Close()
}

// fail ends the body as if the connection had ended.
func (c *cuttable) fail(err error) {
	_ = c.to.CloseWithError(err)
	_ = c.from.Close()
}

// refusal is an answer that is an error.
func refusal(code int, reason string, header ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `","message":"by the test","code":` + strconv.Itoa(code) + `}`
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + reason, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

// once answers the first request that fits, and hands on all others.
func once(fits func(*http.Request) bool, answer func() (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	var mu sync.Mutex
	done := false
	return func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if done || !fits(r) {
			return nil, nil
		}
		done = true
		return answer()
	}
}

// notServed hides the version apps/v1.
func notServed(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/apis/apps/v1") {
		return refusal(404, "NotFound"), nil
	}
	return nil, nil
}

func forbidden(*http.Request) (*http.Response, error) { return refusal(403, "Forbidden"), nil }
