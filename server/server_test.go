package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/even-keel/evenkeel/server"
	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/bootstrap"
	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
)

const (
	master = "master-token"
	nobody = "nobody-token"
)

// running is a server of ours, with all of its parts.
type running struct {
	t       *testing.T
	url     string
	address string
	log     *logBuffer
	// stop ends the server and waits until it has.
	stop func() error
}

// logBuffer is a log that tests read while the server writes it.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func memoryStore(t *testing.T) storage.Store {
	t.Helper()
	store, err := embedded.Open(embedded.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// start runs a server over a store; adjust may change its configuration.
func start(t *testing.T, store storage.Store, adjust func(*server.Config)) *running {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.ParseTokens(strings.NewReader(master + `,admin,1,"system:masters"` + "\n" + nobody + ",somebody,2"))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, address: listener.Addr().String(), url: "http://" + listener.Addr().String(), log: &logBuffer{}}
	config := server.Config{
		Store: store, Listener: listener,
		Authenticator: auth.Union(auth.BearerTokens(tokens)), Authorizer: auth.MastersOnly(),
		Bootstrap: bootstrap.Objects(bootstrap.Options{}),
		Version:   version.Info{Major: "1", Minor: "37"},
		Logger:    slog.New(slog.NewTextHandler(r.log, nil)),
	}
	if adjust != nil {
		adjust(&config)
	}
	s := server.New(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-done:
		done <- err
		t.Fatalf("the server did not start: %v", err)
	}
	return r
}

// reply is an answer that has been read.
type reply struct {
	code   int
	header http.Header
	body   string
}

// do sends a request as a master, unless its headers say otherwise.
func TestOldRevisionsAreCompacted(t *testing.T) {
	store := memoryStore(t)
	r := start(t, store, func(c *server.Config) { c.CompactEvery = 20 * time.Millisecond })
	first := r.do("POST", configMaps, `{"metadata":{"name":"a"}}`).at("metadata", "resourceVersion")
	r.do("DELETE", configMaps+"/a", "")
	deadline := time.Now().Add(10 * time.Second)
	for {
		r.do("POST", configMaps, `{"metadata":{"generateName":"b-"}}`)
		_, err := store.Scan(t.Context(), storage.Range{Revision: revisionOf(t, first)})
		if errors.Is(err, storage.ErrCompacted) {
			return
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the state at %s is still there: %v", first, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func revisionOf(t *testing.T, s any) storage.Revision {
	t.Helper()
	n, err := strconv.ParseUint(fmt.Sprint(s), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return storage.Revision(n)
}

func (r *running) do(method, path, body string, headers ...string) reply {
	r.t.Helper()
	resp := r.open(method, path, strings.NewReader(body), headers...)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return reply{resp.StatusCode, resp.Header, string(data)}
}

func (r *running) open(method, path string, body io.Reader, headers ...string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+master)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp
}

// at returns a value of a JSON body by its path; nil if there is none.
func (a reply) at(path ...string) any {
	var v any
	if json.Unmarshal([]byte(a.body), &v) != nil {
		return nil
	}
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}
