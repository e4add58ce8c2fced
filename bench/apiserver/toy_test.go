//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// toy is an API server that knows no kinds, in this process: enough for a load.
type toy struct {
	server *httptest.Server
	// cutAfter ends each watch after so many events; 0 is never.
	cutAfter int

	mu       sync.Mutex
	revision int
	objects  map[string]string // bodies by path
	watchers map[chan string]string
}

func newToy(t *testing.T) *toy {
	toy := &toy{objects: map[string]string{}, watchers: map[chan string]string{}}
	toy.server = httptest.NewUnstartedServer(toy)
	toy.server.EnableHTTP2 = true
	toy.server.StartTLS()
	t.Cleanup(func() {
		toy.server.CloseClientConnections()
		toy.server.Close()
	})
	return toy
}

// system starts nothing: the toy runs already.
func (t *toy) system(name string) system {
	return system{name: name, start: func(context.Context, string) (*instance, error) {
		config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
		return &instance{address: t.server.Listener.Addr().String(), client: config, took: 1}, nil
	}}
}

func (t *toy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch {
	case r.Method == http.MethodPost:
		t.create(w, r.URL.Path, body)
	case r.Method == http.MethodPut:
		t.update(w, r.URL.Path, body)
	case r.URL.Query().Has("watch"):
		t.watch(w, r)
	default:
		t.read(w, r.URL.Path)
	}
}

type meta struct {
	Metadata struct{ Name, ResourceVersion string }
}

func (t *toy) create(w http.ResponseWriter, collection string, body []byte) {
	var m meta
	if err := json.Unmarshal(body, &m); err != nil || m.Metadata.Name == "" {
		http.Error(w, "no object", http.StatusBadRequest)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.objects[collection+"/"+m.Metadata.Name]; ok {
		http.Error(w, "it exists", http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, t.putLocked(collection, m.Metadata.Name))
}

func (t *toy) update(w http.ResponseWriter, path string, body []byte) {
	var m meta
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := json.Unmarshal(body, &m); err != nil || m.Metadata.ResourceVersion != versionIn([]byte(t.objects[path])) {
		http.Error(w, "another version", http.StatusConflict)
		return
	}
	_, _ = io.WriteString(w, t.putLocked(strings.TrimSuffix(path, "/"+m.Metadata.Name), m.Metadata.Name))
}

// putLocked gives an object a new revision and tells the watchers.
func (t *toy) putLocked(collection, name string) string {
	t.revision++
	object := fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"%06d"}}`, name, t.revision)
	t.objects[collection+"/"+name] = object
	for events, watched := range t.watchers {
		if watched == collection {
			events <- object
		}
	}
	return object
}

func (t *toy) read(w http.ResponseWriter, path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if object, ok := t.objects[path]; ok {
		_, _ = io.WriteString(w, object)
		return
	}
	_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%06d"},"items":[%s]}`, t.revision, strings.Repeat("x", 100_000))
}

func (t *toy) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan string, 10_000)
	t.mu.Lock()
	t.watchers[events] = r.URL.Path
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.watchers, events)
		t.mu.Unlock()
	}()
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	for n := 1; ; n++ {
		select {
		case object := <-events:
			_, _ = fmt.Fprintf(w, "{\"type\":\"MODIFIED\",\"object\":%s}\n", object)
			_ = flush.Flush()
		case <-r.Context().Done():
			return
		}
		if n == t.cutAfter {
			return
		}
	}
}
