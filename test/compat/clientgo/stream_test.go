package clientgo

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// partialEvent is an event of a watch in JSON; of an error, the Status.
type partialEvent struct {
	Type   string `json:"type"`
	Object struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Code              int32               `json:"code"`
		Reason            metav1.StatusReason `json:"reason"`
		Message           string              `json:"message"`
		Data              map[string]string   `json:"data"`
	} `json:"object"`
}

// stream is a watch over plain HTTP.
type stream struct {
	t      *testing.T
	events chan partialEvent
	// ended is what reading ended with, io.EOF if the server ended it.
	ended error
	close func()
}

// get answers a GET with what client-go does not hide.
func get(t *testing.T, s *cluster.Server, path string, header ...string) *http.Response {
	t.Helper()
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Address+path, nil))(t)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return must(rawClient(t, s).Do(req))(t)
}

func rawClient(t *testing.T, s *cluster.Server) *http.Client {
	t.Helper()
	config := s.Admin()
	config.DisableCompression = true
	return must(rest.HTTPClientFor(config))(t)
}

// query is a path with parameters, as name and value in turns.
func query(path string, params ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		q.Add(params[i], params[i+1])
	}
	return path + "?" + q.Encode()
}

// watchPath begins a watch and reads it until it ends or the test does.
func watchPath(t *testing.T, s *cluster.Server, path string) *stream {
	t.Helper()
	resp := get(t, s, path)
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %s %s", path, resp.Status, body)
	}
	w := &stream{t: t, events: make(chan partialEvent, 10_000), close: func() { _ = resp.Body.Close() }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.read(resp.Body)
	}()
	t.Cleanup(func() { w.close(); <-done })
	return w
}

func (w *stream) read(body io.Reader) {
	defer close(w.events)
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if len(line) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			w.ended = err
			return
		}
		var e partialEvent
		if w.ended = json.Unmarshal(line, &e); w.ended != nil {
			return
		}
		w.events <- e
	}
}

// next returns the next event; ok is false if the watch has ended.
func (w *stream) next() (e partialEvent, ok bool) {
	w.t.Helper()
	select {
	case e, ok := <-w.events:
		return e, ok
	case <-time.After(20 * time.Second):
		w.t.Fatal("no event came")
	}
	return
}

// want checks the type and the name of the next event.
func (w *stream) want(kind, name string) partialEvent {
	w.t.Helper()
	e, ok := w.next()
	if !ok || e.Type != kind || e.Object.Name != name {
		w.t.Fatalf("got %+v (%v), want %s %s", e, w.ended, kind, name)
	}
	return e
}

// wantEnd checks that the server ends the watch, and how.
func (w *stream) wantEnd() {
	w.t.Helper()
	if e, ok := w.next(); ok {
		w.t.Fatalf("got %+v, want the end", e)
	}
	if !errors.Is(w.ended, io.EOF) || errors.Is(w.ended, io.ErrUnexpectedEOF) {
		w.t.Errorf("the watch ended with %v", w.ended)
	}
}
