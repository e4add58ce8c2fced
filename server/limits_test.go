package server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/server"
	"github.com/even-keel/evenkeel/storage"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

func TestTooManyRequestsAreTurnedAway(t *testing.T) {
	store := &slowStore{Store: memoryStore(t), entered: make(chan struct{}), release: make(chan struct{})}
	r := start(t, store, func(c *server.Config) { c.Limits.InFlight = 1 })
	store.slow.Store(true)
	first := make(chan int)
	go func() { first <- r.do("POST", configMaps, `{"metadata":{"name":"slow"}}`).code }()
	<-store.entered
	got := r.do("GET", configMaps, "")
	if got.code != 429 || got.header.Get("Retry-After") != "1" || got.at("reason") != "TooManyRequests" {
		t.Errorf("over the bound: %d %v %s", got.code, got.header, got.body)
	}
	close(store.release)
	if code := <-first; code != 201 {
		t.Errorf("the request that was let in: %d", code)
	}
	if got := r.do("GET", configMaps, ""); got.code != 200 {
		t.Errorf("after it: %d %s", got.code, got.body)
	}
}

func TestWatchesPerClientAreBounded(t *testing.T) {
	r := start(t, memoryStore(t), func(c *server.Config) { c.Limits.WatchesPerClient = 1 })
	first := r.open("GET", configMaps+"?watch=1", nil)
	defer func() { _ = first.Body.Close() }()
	if first.StatusCode != 200 {
		t.Fatal(first.Status)
	}
	if got := r.do("GET", configMaps+"?watch=1&timeoutSeconds=1", ""); got.code != 429 || got.header.Get("Retry-After") == "" {
		t.Errorf("one too many: %d %s", got.code, got.body)
	}
	if got := r.do("GET", configMaps, ""); got.code != 200 {
		t.Errorf("a list is no watch: %d", got.code)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	r := start(t, memoryStore(t), nil)
	r.do("POST", configMaps, `{"metadata":{"name":"a"}}`)
	huge := `{"data":{"a":"` + strings.Repeat("x", 3<<20) + `"}}`
	operations := "[" + strings.Repeat(`{"op":"test","path":"/metadata/name","value":"a"},`, 10_000) + `{"op":"test","path":"/metadata/name","value":"a"}]`
	for name, c := range map[string]struct {
		method, path, body, media string
		code                      int
	}{
		"create":             {"POST", configMaps, huge, "application/json", 413},
		"update":             {"PUT", configMaps + "/a", huge, "application/json", 413},
		"patch":              {"PATCH", configMaps + "/a", huge, "application/merge-patch+json", 413},
		"delete":             {"DELETE", configMaps + "/a", huge, "application/json", 413},
		"10,001 operations":  {"PATCH", configMaps + "/a", operations, "application/json-patch+json", 413},
		"deep JSON":          {"POST", configMaps, strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000), "application/json", 400},
		"deep YAML":          {"POST", configMaps, "a: " + strings.Repeat("[", 11_000) + strings.Repeat("]", 11_000), "application/yaml", 400},
		"deep patch":         {"PATCH", configMaps + "/a", strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000), "application/merge-patch+json", 400},
		"YAML aliases":       {"POST", configMaps, aliasBomb(), "application/yaml", 400},
		"applied aliases":    {"PATCH", configMaps + "/a?fieldManager=m", aliasBomb(), "application/apply-patch+yaml", 400},
		"quantity":           {"POST", "/api/v1/namespaces/default/pods", podWith("1e-9999999"), "application/json", 400},
		"quantity of digits": {"POST", "/api/v1/namespaces/default/pods", podWith(strings.Repeat("1", 1_000_000)), "application/json", 400},
		"applied quantity":   {"PATCH", "/api/v1/namespaces/default/pods/p?fieldManager=m", podWith("1e9999999"), "application/apply-patch+yaml", 400},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			got := r.do(c.method, c.path, c.body, "Content-Type", c.media)
			if got.code != c.code || got.at("kind") != "Status" {
				t.Errorf("%d %.300s", got.code, got.body)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	if got := r.do("POST", configMaps, `{"metadata":{"name":"number"},"data":{"a":"1e-9999999"}}`); got.code != 201 {
		t.Errorf("what is no quantity may look like one: %d %s", got.code, got.body)
	}
}

func podWith(quantity string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"` + quantity + `"}}}]}}`
}

func aliasBomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		from := string(rune('0' + i))
		to := string(rune('1' + i))
		b.WriteString("a" + to + ": &a" + to + " [" + strings.TrimSuffix(strings.Repeat("*a"+from+",", 9), ",") + "]\n")
	}
	return b.String()
}

// A client that sends its headers a byte at a time is cut off.
func TestSlowHeadersAreCut(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the header timeout")
	}
	t.Parallel()
	r := start(t, memoryStore(t), nil)
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	answer, err := io.ReadAll(conn) // ends when the server closes
	if err != nil {
		t.Fatalf("the connection was not cut: %v", err)
	}
	if strings.HasPrefix(string(answer), "HTTP/1.1 200") {
		t.Errorf("answered %q", answer)
	}
}

// So is one that never ends its body.
func TestSlowBodiesAreRefused(t *testing.T) {
	r := start(t, memoryStore(t), func(c *server.Config) { c.Limits.BodyWithin = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "POST "+configMaps+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+master+"\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	answer, err := io.ReadAll(conn) // ends when the server closes
	if err != nil {
		t.Fatalf("the connection was not cut: %v", err)
	}
	if !strings.HasPrefix(string(answer), "HTTP/1.1 408") || !strings.Contains(string(answer), `"reason":"Timeout"`) {
		t.Errorf("answered %q", answer)
	}
}

func TestAPanicIsAnAnswerAndALogLine(t *testing.T) {
	store := &slowStore{Store: memoryStore(t)}
	r := start(t, store, nil)
	store.panics.Store(true)
	got := r.do("POST", configMaps, `{"metadata":{"name":"a"}}`)
	store.panics.Store(false)
	if got.code != 500 || got.at("kind") != "Status" || got.at("reason") != "InternalError" {
		t.Errorf("%d %s", got.code, got.body)
	}
	if log := r.log.String(); !strings.Contains(log, "the disk caught fire") || !strings.Contains(log, "limits_test.go") {
		t.Errorf("the log has no panic with its stack: %.500s", log)
	}
	if strings.Contains(got.body, "fire") {
		t.Errorf("the client is told what went wrong inside: %s", got.body)
	}
	if got := r.do("POST", configMaps, `{"metadata":{"name":"a"}}`); got.code != 201 {
		t.Errorf("the server did not live on: %d %s", got.code, got.body)
	}
}

func TestStopEndsWatchesAndFinishesWrites(t *testing.T) {
	store := &slowStore{Store: memoryStore(t), entered: make(chan struct{}), release: make(chan struct{})}
	r := start(t, store, nil)
	watch := r.open("GET", configMaps+"?watch=1&resourceVersion=0", nil)
	defer func() { _ = watch.Body.Close() }()
	store.slow.Store(true)
	wrote := make(chan int)
	go func() { wrote <- r.do("POST", configMaps, `{"metadata":{"name":"late"}}`).code }()
	<-store.entered
	stopped := make(chan error)
	go func() { stopped <- r.stop() }()
	if _, err := io.Copy(io.Discard, watch.Body); err != nil {
		t.Errorf("the watch did not end cleanly: %v", err)
	}
	close(store.release)
	if code := <-wrote; code != 201 {
		t.Errorf("the write in flight: %d", code)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(r.url + "/healthz"); err == nil {
		t.Error("a stopped server answers")
	}
}

// slowStore is a store whose commits wait, or panic, when told to.
type slowStore struct {
	storage.Store
	slow, panics, sick atomic.Bool
	entered            chan struct{}
	release            chan struct{}
}

func (s *slowStore) Health(context.Context) error {
	if s.sick.Load() {
		return errors.New("the disk is full")
	}
	return nil
}

func (s *slowStore) Commit(ctx context.Context, w storage.Write) (storage.Result, error) {
	if s.panics.Load() {
		panic("the disk caught fire")
	}
	if s.slow.Swap(false) {
		close(s.entered)
		<-s.release
	}
	return s.Store.Commit(ctx, w)
}
