package informer_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

// These tests run in a bubble, where time passes when all wait: over a transport
// in memory that writes down when it was asked for what.

// script is a transport whose answers a test writes.
type script struct {
	answer func(*http.Request) *http.Response

	mu    sync.Mutex
	start time.Time
	asked []ask
}

type ask struct {
	at    time.Duration
	query string // "watchlist", "watch from 7", "list", or a path
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	what := "list"
	switch {
	case !strings.HasSuffix(r.URL.Path, "configmaps"):
		what = r.URL.Path
	case q.Get("sendInitialEvents") != "":
		what = "watchlist"
	case isWatch(r):
		what = "watch from " + q.Get("resourceVersion")
	}
	s.mu.Lock()
	s.asked = append(s.asked, ask{time.Since(s.start), what})
	s.mu.Unlock()
	resp := s.answer(r)
	resp.Request = r
	return resp, nil
}

func (s *script) log() []ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]ask(nil), s.asked...)
}

func (s *script) connect(t *testing.T) *client.Conn {
	t.Helper()
	s.start = time.Now()
	conn, err := client.Connect(&rest.Config{Host: "http://in.memory", Transport: s}, client.Retries(0))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// tape is the body of an answer, which is written while it is read.
type tape struct {
	*io.PipeReader
	to     *io.PipeWriter
	closed chan struct{}
	once   sync.Once
}

func (t *tape) Close() error {
	t.once.Do(func() { close(t.closed) })
	return t.PipeReader.Close()
}

// send and wait return false once the reader has closed the body.
func (t *tape) send(format string, args ...any) bool {
	_, err := fmt.Fprintf(t.to, format+"\n", args...)
	return err == nil
}

func (t *tape) wait(d time.Duration) bool {
	select {
	case <-t.closed:
		return false
	case <-time.After(d):
		return true
	}
}

// stream is an answer whose body is written until write returns.
func stream(write func(*tape)) *http.Response {
	r, w := io.Pipe()
	t := &tape{PipeReader: r, to: w, closed: make(chan struct{})}
	go func() {
		write(t)
		_ = w.Close()
	}()
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: t,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}
}

const (
	oneMap   = `{"type":%q,"object":{"metadata":{"name":%q,"namespace":"ns","uid":"u","resourceVersion":"%d"}}}`
	bookmark = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}`
	endMark  = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	mapList  = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[{"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"3"}}]}`
)

// quiet sends nothing for a time.
func quiet(d time.Duration) *http.Response {
	return stream(func(t *tape) { t.wait(d) })
}

func TestAStateWithoutAnEndIsListed(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		write func(*tape)
	}{
		"nothing comes": {15 * time.Second, func(t *tape) { t.wait(time.Hour) }},
		"only changes of what came": {15 * time.Second, func(t *tape) {
			for i := 1; t.send(oneMap, "ADDED", "a", i); i++ {
				t.wait(time.Second)
			}
		}},
		"always something new": {300 * time.Second, func(t *tape) {
			for i := 1; t.send(oneMap, "ADDED", fmt.Sprint("m", i), i) && t.send(bookmark, i); i++ {
				t.wait(10 * time.Second)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answer: func(r *http.Request) *http.Response {
					switch {
					case r.URL.Query().Get("sendInitialEvents") != "":
						return stream(c.write)
					case isWatch(r):
						return quiet(time.Minute)
					}
					return stream(func(t *tape) { t.send(mapList, 7) })
				}}
				set := informer.NewSet(s.connect(t), informer.Config{})
				in := informer.For[*corev1.ConfigMap](set)
				set.Start()
				if err := in.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				took := time.Since(s.start)
				synctest.Wait()
				set.Shutdown()
				if took < c.after || took > c.after+2*time.Second {
					t.Errorf("it listed after %s", took)
				}
				if in.Count() != 1 || in.Snapshot().Revision() != "7" {
					t.Errorf("the cache has %d objects at %s", in.Count(), in.Snapshot().Revision())
				}
				asked := s.log()
				if last := asked[len(asked)-1]; len(asked) != 3 || last.query != "watch from 7" {
					t.Errorf("it asked %v", asked)
				}
			})
		})
	}
}

func TestAServerWithoutWatchListIsListedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(r *http.Request) *http.Response {
			switch {
			case r.URL.Query().Get("sendInitialEvents") != "":
				return refusal(422, "Invalid")
			case isWatch(r):
				return quiet(time.Minute)
			}
			return stream(func(t *tape) { t.send(mapList, 7) })
		}}
		set := informer.NewSet(s.connect(t), informer.Config{})
		in := informer.For[*corev1.ConfigMap](set)
		set.Start()
		if err := in.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(s.start); took != 0 {
			t.Errorf("it took %s", took)
		}
		set.Shutdown()
	})
}

func TestBackoffDoublesAndHasABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(*http.Request) *http.Response { return refusal(500, "InternalError") }}
		set := informer.NewSet(s.connect(t), informer.Config{})
		informer.For[*corev1.ConfigMap](set)
		set.Start()
		time.Sleep(10 * time.Minute)
		set.Shutdown()
		asked := s.log()
		if len(asked) < 20 {
			t.Fatalf("it asked %d times in ten minutes", len(asked))
		}
		full, halves := 50*time.Millisecond, 0
		for i := range len(asked) - 1 {
			wait := asked[i+1].at - asked[i].at
			if wait < full/2 || wait > full {
				t.Errorf("after failure %d it waited %s, not about %s", i+1, wait, full)
			}
			if wait == full {
				halves++
			}
			full = min(2*full, 30*time.Second)
		}
		if halves > 2 {
			t.Error("nothing is left to chance")
		}
	})
}

func TestAServerThatAsksForPatienceGetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := true
		s := &script{}
		s.answer = func(*http.Request) *http.Response {
			if busy {
				busy = false
				resp := refusal(429, "")
				resp.Header.Set("Retry-After", "7")
				resp.Body = io.NopCloser(strings.NewReader("busy"))
				return resp
			}
			return stream(func(t *tape) {
				t.send(endMark, 7)
				t.wait(time.Hour)
			})
		}
		set := informer.NewSet(s.connect(t), informer.Config{})
		in := informer.For[*corev1.ConfigMap](set)
		set.Start()
		if err := in.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(s.start); took < 7*time.Second || took > 8*time.Second {
			t.Errorf("it came back after %s", took)
		}
		set.Shutdown()
	})
}

// TestIdleWatchesAreRenewedAtOnce: a watch that the server ends in time is no
// failure, however many there are.
func TestIdleWatchesAreRenewedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(r *http.Request) *http.Response {
			if r.URL.Query().Get("sendInitialEvents") != "" {
				return stream(func(t *tape) { t.send(endMark, 7) })
			}
			return quiet(time.Minute)
		}}
		failed := 0
		set := informer.NewSet(s.connect(t), informer.Config{OnError: func(informer.Failure) { failed++ }})
		informer.For[*corev1.ConfigMap](set)
		set.Start()
		time.Sleep(time.Hour)
		set.Shutdown()
		asked := s.log()
		for i, a := range asked[2:] {
			if a.query != "watch from 7" || a.at-asked[i+1].at > time.Minute+50*time.Millisecond {
				t.Errorf("%s at %s, after %s", a.query, a.at, asked[i+1].at)
			}
		}
		if len(asked) < 55 || failed > 0 {
			t.Errorf("it asked %d times, %d failures", len(asked), failed)
		}
	})
}

func TestAMissingKindIsLookedForOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(*http.Request) *http.Response { return refusal(404, "NotFound") }}
		set := informer.NewSet(s.connect(t), informer.Config{})
		informer.For[*unstructured.Unstructured](set, informer.Kind(appsv1.SchemeGroupVersion.WithKind("Deployment")))
		set.Start()
		time.Sleep(10 * time.Minute)
		set.Shutdown()
		asked := s.log()
		for i := range len(asked) - 1 {
			if wait := asked[i+1].at - asked[i].at; wait > 5*time.Second {
				t.Fatalf("it waited %s", wait)
			}
		}
		if len(asked) < 100 || len(asked) > 400 {
			t.Errorf("it asked %d times in ten minutes", len(asked))
		}
	})
}

func TestAKindThatGoesTakesItsObjectsAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone atomic.Bool
		s := &script{}
		s.answer = func(r *http.Request) *http.Response {
			switch {
			case gone.Load():
				return refusal(404, "NotFound")
			case strings.HasSuffix(r.URL.Path, "/v1"):
				return stream(func(t *tape) {
					t.send(`{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"Thing","namespaced":true}]}`)
				})
			}
			return stream(func(t *tape) {
				t.send(oneMap, "ADDED", "a", 3)
				t.send(endMark, 7)
				t.wait(time.Minute)
				gone.Store(true)
			})
		}
		set := informer.NewSet(s.connect(t), informer.Config{})
		in := informer.For[*unstructured.Unstructured](set, informer.Kind(appsv1.SchemeGroupVersion.WithKind("Thing")))
		var heard []string
		in.Handle(func(d informer.Delta[*unstructured.Unstructured]) {
			heard = append(heard, fmt.Sprint(d.Type, d.Unknown))
		})
		set.Start()
		time.Sleep(2 * time.Minute)
		set.Shutdown()
		if got := strings.Join(heard, " "); got != "Added false Deleted true" || in.Count() != 0 {
			t.Errorf("the handler heard %q, %d are left", got, in.Count())
		}
	})
}

func TestResyncRepeatsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(*http.Request) *http.Response {
			return stream(func(t *tape) {
				t.send(oneMap, "ADDED", "a", 3)
				t.send(endMark, 7)
				t.wait(45 * time.Second)
				t.send(oneMap, "MODIFIED", "a", 8)
				t.wait(time.Hour)
			})
		}}
		set := informer.NewSet(s.connect(t), informer.Config{})
		in := informer.For[*corev1.ConfigMap](set)
		var often, never []string
		hear := func(to *[]string) func(informer.Delta[*corev1.ConfigMap]) {
			return func(d informer.Delta[*corev1.ConfigMap]) {
				*to = append(*to, fmt.Sprintf("%s %s %.0fs", d.Type, d.Revision(), time.Since(s.start).Seconds()))
			}
		}
		in.HandleWith(informer.HandlerOptions[*corev1.ConfigMap]{Resync: 30 * time.Second}, hear(&often))
		in.Handle(hear(&never))
		set.Start()
		time.Sleep(100 * time.Second)
		set.Shutdown()
		if got, want := strings.Join(often, ", "), "Added 3 0s, Sync 3 30s, Updated 8 45s, Sync 8 60s, Sync 8 90s"; got != want {
			t.Errorf("the handler heard %s, not %s", got, want)
		}
		if got, want := strings.Join(never, ", "), "Added 3 0s, Updated 8 45s"; got != want {
			t.Errorf("the other handler heard %s, not %s", got, want)
		}
	})
}
