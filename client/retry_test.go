package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/even-keel/evenkeel/client"
)

// pipes is a listener whose connections are in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveInMemory serves a handler within the bubble of a test.
func serveInMemory(t *testing.T, h http.HandlerFunc, adjust func(*rest.Config), opts ...client.Option) *client.Client[*corev1.ConfigMap] {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	s := &http.Server{Handler: h}
	served := make(chan error, 1)
	go func() { served <- s.Serve(p) }()
	transport := &http.Transport{DialContext: p.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = s.Close()
		<-served
	})
	cfg := &rest.Config{Host: "http://memory", Transport: transport}
	if adjust != nil {
		adjust(cfg)
	}
	conn, err := client.Connect(cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return client.Of[*corev1.ConfigMap](conn).In("default")
}

// refusing answers with codes, one after the other, and then as a server does.
func refusing(after string, codes ...int) (http.HandlerFunc, *int) {
	asked := 0
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked++
		if asked <= len(codes) {
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			http.Error(w, "not now", codes[asked-1])
			return
		}
		if r.Method == http.MethodPost {
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
			_, _ = w.Write(body)
			return
		}
		answer(w, configMap("a", nil))
	}, &asked
}

func TestRetries(t *testing.T) {
	create := func(ctx context.Context, c *client.Client[*corev1.ConfigMap]) error {
		_, err := c.Create(ctx, configMap("a", nil))
		return err
	}
	get := func(ctx context.Context, c *client.Client[*corev1.ConfigMap]) error {
		_, err := c.Get(ctx, client.Key{Name: "a"})
		return err
	}
	for name, test := range map[string]struct {
		call  func(context.Context, *client.Client[*corev1.ConfigMap]) error
		after string
		codes []int
		asked int
		waits time.Duration
		is    func(error) bool
	}{
		"too many requests":         {call: get, after: "2", codes: []int{429, 429}, asked: 3, waits: 4 * time.Second},
		"a write too":               {call: create, after: "1", codes: []int{429}, asked: 2, waits: time.Second},
		"unavailable":               {call: create, after: "3", codes: []int{503}, asked: 2, waits: 3 * time.Second},
		"at once":                   {call: get, after: "0", codes: []int{429}, asked: 2, waits: time.Millisecond},
		"unavailable, without hint": {call: get, codes: []int{503}, asked: 1, is: func(err error) bool { return err != nil }},
		"too many, without hint":    {call: get, codes: []int{429}, asked: 1, is: client.IsTooManyRequests},
		"a hint with a refusal":     {call: get, after: "1", codes: []int{404}, asked: 1, is: client.IsNotFound},
		"longer than is waited":     {call: get, after: "3600", codes: []int{429}, asked: 1, is: client.IsTooManyRequests},
		"for ever": {call: get, after: "1", codes: []int{429, 429, 429, 429, 429, 429, 429, 429, 429, 429, 429, 429}, asked: 11,
			waits: 10 * time.Second, is: client.IsTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler, asked := refusing(test.after, test.codes...)
				c := serveInMemory(t, handler, nil)
				began := time.Now()
				err := test.call(t.Context(), c)
				if test.is == nil && err != nil || test.is != nil && !test.is(err) {
					t.Errorf("the error is %v", err)
				}
				if *asked != test.asked || time.Since(began) != test.waits {
					t.Errorf("asked %d times in %v; want %d in %v", *asked, time.Since(began), test.asked, test.waits)
				}
			})
		})
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, _ := refusing("20", 429)
		c := serveInMemory(t, handler, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Get(ctx, client.Key{Name: "a"})
		if !errors.Is(err, context.DeadlineExceeded) || !client.IsTooManyRequests(err) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestRetriesCanBeOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, asked := refusing("1", 429)
		c := serveInMemory(t, handler, nil, client.Retries(0))
		if _, err := c.Get(t.Context(), client.Key{Name: "a"}); !client.IsTooManyRequests(err) || *asked != 1 {
			t.Errorf("asked %d times: %v", *asked, err)
		}
	})
}

func TestReadsAreRepeatedWhenTheConnectionBreaks(t *testing.T) {
	for name, brk := range map[string]func(w http.ResponseWriter){
		"before the answer": func(http.ResponseWriter) {},
		"within the answer": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"kind":`)
			w.(http.Flusher).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				handler := func(w http.ResponseWriter, r *http.Request) {
					if asked++; asked%2 == 1 {
						brk(w)
						panic(http.ErrAbortHandler)
					}
					answer(w, configMap("a", nil))
				}
				c := serveInMemory(t, handler, nil)
				if _, err := c.Get(t.Context(), client.Key{Name: "a"}); err != nil || asked != 2 {
					t.Errorf("asked %d times: %v", asked, err)
				}
				if _, err := c.Create(t.Context(), configMap("a", nil)); err == nil || asked != 3 {
					t.Errorf("a write was sent again: asked %d times, %v", asked, err)
				}
			})
		})
	}
}

// TestABrokenConnectionIsNotWaitedForLong: who watches has to be right again soon
// after a fault, and one connection that broke is no reason to spare the server.
func TestABrokenConnectionIsNotWaitedForLong(t *testing.T) {
	for name, test := range map[string]struct {
		breaks      int
		least, most time.Duration
	}{
		"once":       {1, 25 * time.Millisecond, 50 * time.Millisecond},
		"three":      {3, 175 * time.Millisecond, 350 * time.Millisecond},
		"many times": {9, 2775 * time.Millisecond, 5550 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				c := serveInMemory(t, func(w http.ResponseWriter, r *http.Request) {
					if asked++; asked <= test.breaks {
						panic(http.ErrAbortHandler)
					}
					answer(w, configMap("a", nil))
				}, nil)
				began := time.Now()
				_, err := c.Get(t.Context(), client.Key{Name: "a"})
				if took := time.Since(began); err != nil || took < test.least || took > test.most {
					t.Errorf("it took %s: %v", took, err)
				}
			})
		})
	}
}

func TestRequestsAreLimitedOnlyIfAsked(t *testing.T) {
	for name, test := range map[string]struct {
		adjust func(*rest.Config)
		waits  time.Duration
	}{
		"by default": {nil, 0},
		"QPS":        {func(c *rest.Config) { c.QPS, c.Burst = 2, 1 }, 9500 * time.Millisecond},
		"a limiter":  {func(c *rest.Config) { c.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(1, 10) }, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler, _ := refusing("")
				c := serveInMemory(t, handler, test.adjust)
				began := time.Now()
				for range 20 {
					if _, err := c.Get(t.Context(), client.Key{Name: "a"}); err != nil {
						t.Fatal(err)
					}
				}
				if got := time.Since(began).Round(time.Millisecond); got != test.waits {
					t.Errorf("20 requests took %v, not %v", got, test.waits)
				}
			})
		})
	}
}

func TestAnswersThatAreNoStatus(t *testing.T) {
	for code, is := range map[int]func(error) bool{404: client.IsNotFound, 403: client.IsForbidden, 401: client.IsUnauthorized, 410: client.IsExpired} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler, _ := refusing("", code)
				if _, err := serveInMemory(t, handler, nil).Get(t.Context(), client.Key{Name: "a"}); !is(err) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

func TestRequestsSayWhoSendsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var agent, manager string
		handler := func(w http.ResponseWriter, r *http.Request) {
			agent, manager = r.UserAgent(), r.URL.Query().Get("fieldManager")
			answer(w, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		}
		c := serveInMemory(t, handler, func(c *rest.Config) { c.UserAgent = "robot/1.2 (linux)" })
		if _, err := c.Patch(t.Context(), client.Key{Name: "a"}, client.MergePatch("{}")); err != nil {
			t.Fatal(err)
		}
		if agent != "robot/1.2 (linux)" || manager != "robot" {
			t.Errorf("sent by %q, managed by %q", agent, manager)
		}
	})
}

func TestOnceIsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, asked := refusing("1", http.StatusTooManyRequests, http.StatusTooManyRequests)
		maps := serveInMemory(t, h, nil)
		if _, err := maps.Get(client.Once(t.Context()), client.Key{Name: "a"}); err == nil || *asked != 1 {
			t.Errorf("after %d requests the error is %v", *asked, err)
		}
		if _, err := maps.Get(t.Context(), client.Key{Name: "a"}); err != nil || *asked != 3 {
			t.Errorf("after %d requests the error is %v", *asked, err)
		}
	})
}
