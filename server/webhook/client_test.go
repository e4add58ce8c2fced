package webhook_test

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/webhook"
)

func TestWebhookIsCalledByItsURL(t *testing.T) {
	s := startServer(t, serverOptions{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s %s %s %s", r.Method, r.Proto, r.URL, r.Header.Get("Content-Type"), r.Header.Get("Accept"), r.UserAgent(), body)
	})
	h := newHook(t, newClient(t, webhook.Options{}), s.config("/convert/it"))
	got, err := h.Post(t.Context(), webhook.Call{Body: []byte(`{"a":1}`), Timeout: 5 * time.Second})
	want := `POST HTTP/2.0 /convert/it?timeout=5s application/json application/json, */* evenkeel-admission {"a":1}`
	if string(got) != want || err != nil {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
	if h.URL() != s.URL+"/convert/it" {
		t.Errorf("the webhook is called %s", h.URL())
	}
}

func TestServiceIsCalledWhereItIsResolved(t *testing.T) {
	s := startServer(t, serverOptions{host: "hook.system.svc"}, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Host, r.URL)
	})
	port, path := int32(8443), "/convert"
	tests := map[string]struct {
		service     webhook.Service
		asked, want string
	}{
		"all said":     {webhook.Service{Namespace: "system", Name: "hook", Port: &port, Path: &path}, "system hook 8443", "hook.system.svc:8443 /convert?timeout=30s"},
		"nothing said": {webhook.Service{Namespace: "system", Name: "hook"}, "system hook 443", "hook.system.svc:443 /?timeout=30s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var asked string
			c := newClient(t, webhook.Options{Resolver: resolverFunc(func(_ context.Context, namespace, name string, port int32) (string, error) {
				asked = fmt.Sprint(namespace, " ", name, " ", port)
				return s.Listener.Addr().String(), nil
			})})
			got := post(t, newHook(t, c, webhook.Config{Service: &test.service, CABundle: s.authority.pem}))
			if got != test.want || asked != test.asked {
				t.Errorf("got %q, resolved %q; want %q, %q", got, asked, test.want, test.asked)
			}
		})
	}
}

func TestServiceIsFollowedToItsEndpoints(t *testing.T) {
	ca := newAuthority(t)
	var at []string
	for _, name := range []string{"first", "second"} {
		s := startServer(t, serverOptions{host: "hook.system.svc"}, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) })
		ca.pem = append(ca.pem, s.authority.pem...)
		at = append(at, s.Listener.Addr().String())
	}
	calls := 0
	c := newClient(t, webhook.Options{Resolver: resolverFunc(func(context.Context, string, string, int32) (string, error) {
		calls++
		return at[calls-1], nil
	})})
	h := newHook(t, c, webhook.Config{Service: &webhook.Service{Namespace: "system", Name: "hook"}, CABundle: ca.pem})
	if first, second := post(t, h), post(t, h); first != "first" || second != "second" {
		t.Errorf("called %s and %s", first, second)
	}
}

func TestFailedCallsSayWhy(t *testing.T) {
	tests := map[string]struct {
		answer http.HandlerFunc
		is     error
		want   string
	}{
		"500": {
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "out of order", 500) }, webhook.ErrStatus,
			`the webhook answered 500 Internal Server Error: an error on the server ("out of order") has prevented the request from succeeding`},
		"404": {
			http.NotFound, webhook.ErrStatus, "the webhook answered 404 Not Found: the server could not find the requested resource"},
		"an odd status": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) }, webhook.ErrStatus,
			"the webhook answered 299: the server responded with the status code 299 but did not return more information"},
		"a Status": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(403)
				io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not you"}`)
			}, webhook.ErrStatus, "the webhook answered 403 Forbidden: not you"},
		"endless failure": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403); endless(w) }, webhook.ErrStatus,
			"the webhook answered 403 Forbidden: " + strings.Repeat("x", 2048) + "..."},
		"redirect": {
			func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					t.Errorf("the redirect was followed to %s", r.URL)
				}
				http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
			}, webhook.ErrStatus, `the webhook answered 307 Temporary Redirect: redirects are not followed, here to "/other"`},
		"huge": {
			func(w http.ResponseWriter, _ *http.Request) { endless(w) }, webhook.ErrTooLarge,
			"the webhook's answer is too large: at most 1000000 bytes are read"},
		"huge, and says so": {
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1000001"); endless(w) }, webhook.ErrTooLarge,
			"the webhook's answer is too large: 1000001 bytes, at most 1000000 are read"},
		"huge, unless compressed": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				endless(z)
				z.Close()
			}, webhook.ErrTooLarge, "the webhook's answer is too large: at most 1000000 bytes are read"},
		"cut off": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "10")
				io.WriteString(w, "12345")
				http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}, nil, "read the answer: stream error: stream ID 1; INTERNAL_ERROR; received from peer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, serverOptions{}, test.answer)
			h := newHook(t, newClient(t, webhook.Options{}), s.config(""))
			_, err := h.Post(t.Context(), webhook.Call{MaxAnswer: 1e6})
			want := fmt.Sprintf("Post %q: %s", s.URL+"/?timeout=30s", test.want)
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %v", err, want)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%v is not %v", err, test.is)
			}
			if apierrors.ReasonForError(err) != "" {
				t.Error("the webhook's failure is an error of the API")
			}
		})
	}
}

// endless writes until nobody listens.
func endless(w io.Writer) {
	x := []byte(strings.Repeat("x", 1<<16))
	for range 1 << 10 {
		if _, err := w.Write(x); err != nil {
			return
		}
	}
}

func TestAnswerOfExactlyTheBoundIsRead(t *testing.T) {
	s := startServer(t, serverOptions{}, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "12345") })
	h := newHook(t, newClient(t, webhook.Options{}), s.config(""))
	if got, err := h.Post(t.Context(), webhook.Call{MaxAnswer: 5}); string(got) != "12345" || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestForeignServerIsNotTrusted(t *testing.T) {
	s := startServer(t, serverOptions{host: "hook.system.svc"}, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
	service := &webhook.Service{Namespace: "system", Name: "hook"}
	other := &webhook.Service{Namespace: "system", Name: "other"}
	tests := map[string]struct {
		cfg  webhook.Config
		as   any
		want string
	}{
		"wrong authority": {
			webhook.Config{Service: service, CABundle: newAuthority(t).pem}, new(x509.UnknownAuthorityError),
			`Post "https://hook.system.svc:443/?timeout=30s": tls: failed to verify certificate: x509: certificate signed by unknown authority`},
		"the system's authorities": {
			webhook.Config{Service: service, CABundle: []byte(" \n")}, new(x509.UnknownAuthorityError),
			`Post "https://hook.system.svc:443/?timeout=30s": tls: failed to verify certificate: x509: certificate signed by unknown authority`},
		"wrong service": {
			webhook.Config{Service: other, CABundle: s.authority.pem}, new(x509.HostnameError),
			`Post "https://other.system.svc:443/?timeout=30s": tls: failed to verify certificate: x509: certificate is valid for hook.system.svc, not other.system.svc`},
		"wrong host": {
			s.config(""), new(x509.HostnameError),
			fmt.Sprintf(`Post "%s/?timeout=30s": tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1`, s.URL)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, webhook.Options{Resolver: always(s.Listener.Addr().String())})
			_, err := newHook(t, c, test.cfg).Post(t.Context(), webhook.Call{})
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %v", err, test.want)
			}
			if !errors.As(err, test.as) {
				t.Errorf("%v is no %T", err, test.as)
			}
		})
	}
}

func TestDeadWebhookIsRefused(t *testing.T) {
	dead := deadAddress(t)
	c := newClient(t, webhook.Options{Resolver: always(dead)})
	_, err := newHook(t, c, webhook.Config{Service: &webhook.Service{Namespace: "system", Name: "hook"}}).Post(t.Context(), webhook.Call{})
	want := `Post "https://hook.system.svc:443/?timeout=30s": dial tcp ` + dead + `: connect: connection refused`
	if err == nil || err.Error() != want || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

func TestServerWithoutTLSIsRefused(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	at := "https://" + s.Listener.Addr().String()
	_, err := newHook(t, newClient(t, webhook.Options{}), webhook.Config{URL: &at}).Post(t.Context(), webhook.Call{})
	want := fmt.Sprintf(`Post "%s/?timeout=30s": http: server gave HTTP response to HTTPS client`, at)
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

func TestServiceThatCannotBeResolved(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, "hook")
	c := newClient(t, webhook.Options{Resolver: resolverFunc(func(context.Context, string, string, int32) (string, error) {
		return "", missing
	})})
	_, err := newHook(t, c, webhook.Config{Service: &webhook.Service{Namespace: "system", Name: "hook"}}).Post(t.Context(), webhook.Call{})
	want := `Post "https://hook.system.svc:443/?timeout=30s": resolve the service: services "hook" not found`
	if err == nil || err.Error() != want || !errors.Is(err, webhook.ErrResolve) {
		t.Errorf("got  %v\nwant %v", err, want)
	}
	if apierrors.IsNotFound(err) {
		t.Error("a missing service looks like a missing object of the caller")
	}
}

func TestConfigurationsThatCannotBeCalled(t *testing.T) {
	text := func(s string) *string { return &s }
	port := int32(70000)
	const form = "; desired format: https://host[/path]"
	tests := map[string]struct {
		cfg  webhook.Config
		want string
	}{
		"nothing":         {webhook.Config{}, "webhook configuration must have either service or URL"},
		"empty URL":       {webhook.Config{URL: text("")}, "webhook configuration must have either service or URL"},
		"both":            {webhook.Config{URL: text("https://h"), Service: &webhook.Service{}}, "only one of url and service may be set"},
		"http":            {webhook.Config{URL: text("http://h/p")}, `url "http://h/p": 'https' is the only allowed URL scheme` + form},
		"no scheme":       {webhook.Config{URL: text("h/p")}, `url "h/p": 'https' is the only allowed URL scheme` + form},
		"no host":         {webhook.Config{URL: text("https:///p")}, `url "https:///p": host must be specified` + form},
		"port only":       {webhook.Config{URL: text("https://:443/p")}, `url "https://:443/p": host must be specified` + form},
		"no URL":          {webhook.Config{URL: text("https://%zz")}, `url must be a valid URL: parse "https://%zz": invalid URL escape "%zz"`},
		"password":        {webhook.Config{URL: text("https://u:secret@h/p")}, "url of h: user information is not permitted in the URL"},
		"query":           {webhook.Config{URL: text("https://h/p?q=1")}, `url "https://h/p?q=1": query parameters are not permitted in the URL`},
		"fragment":        {webhook.Config{URL: text("https://h/p#f")}, `url "https://h/p#f": fragments are not permitted in the URL`},
		"no certificates": {webhook.Config{URL: text("https://h/p"), CABundle: []byte("x")}, "https://h/p: unable to load root certificates: the caBundle holds no certificate in PEM"},
		"no name":         {webhook.Config{Service: &webhook.Service{Namespace: "n"}}, "the service needs a name and a namespace"},
		"bad port":        {webhook.Config{Service: &webhook.Service{Namespace: "n", Name: "s", Port: &port}}, "port 70000 of the service is not between 1 and 65535"},
		"no resolver":     {webhook.Config{Service: &webhook.Service{Namespace: "n", Name: "s"}}, "https://s.n.svc:443/: services cannot be resolved"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := newClient(t, webhook.Options{}).Hook(test.cfg)
			want := "invalid webhook configuration: " + test.want
			if err == nil || err.Error() != want || !errors.Is(err, webhook.ErrConfig) {
				t.Errorf("got  %v\nwant %v", err, want)
			}
		})
	}
}

func TestConnectionsAreReused(t *testing.T) {
	for name, opts := range map[string]serverOptions{"HTTP/2": {}, "HTTP/1": {http1: true}} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, opts, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })
			c := newClient(t, webhook.Options{})
			for i := range 10 {
				path := fmt.Sprint("/", i)
				if got := post(t, newHook(t, c, s.config(path))); got != path {
					t.Errorf("%s answered %s", path, got)
				}
			}
			if n := s.handshakes.Load(); n != 1 {
				t.Errorf("%d handshakes for ten calls", n)
			}
		})
	}
}

func TestCallsAtOnceShareAConnection(t *testing.T) {
	const n = 20
	var all sync.WaitGroup
	all.Add(n)
	s := startServer(t, serverOptions{}, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			all.Done()
			all.Wait()
		}
	})
	c := newClient(t, webhook.Options{})
	post(t, newHook(t, c, s.config("/first")))
	h := newHook(t, c, s.config("/"))
	var callers sync.WaitGroup
	for range n {
		callers.Go(func() {
			if _, err := h.Post(t.Context(), webhook.Call{}); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if n := s.handshakes.Load(); n != 1 {
		t.Errorf("%d handshakes", n)
	}
}

func TestConnectionIsNotSharedWithOtherRoots(t *testing.T) {
	s := startServer(t, serverOptions{}, func(http.ResponseWriter, *http.Request) {})
	c := newClient(t, webhook.Options{})
	post(t, newHook(t, c, s.config("")))
	cfg := s.config("")
	cfg.CABundle = newAuthority(t).pem
	if _, err := newHook(t, c, cfg).Post(t.Context(), webhook.Call{}); err == nil {
		t.Error("a server that the bundle does not vouch for was called, on a connection of another webhook")
	}
}

func TestOldestWebhookMakesRoom(t *testing.T) {
	answer := func(http.ResponseWriter, *http.Request) {}
	old, young, third := startServer(t, serverOptions{}, answer), startServer(t, serverOptions{}, answer), startServer(t, serverOptions{}, answer)
	c := newClient(t, webhook.Options{MaxTransports: 2})
	for _, s := range []*server{young, old, young, third} {
		post(t, newHook(t, c, s.config("")))
	}
	<-old.closed
	post(t, newHook(t, c, young.config("")))
	if n := young.handshakes.Load(); n != 1 {
		t.Errorf("%d handshakes of a webhook that is in use", n)
	}
}

func TestEvictedWebhookEndsItsCallFirst(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := startServer(t, serverOptions{}, func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		io.WriteString(w, "done")
	})
	other := startServer(t, serverOptions{}, func(http.ResponseWriter, *http.Request) {})
	c := newClient(t, webhook.Options{MaxTransports: 1})
	h := newHook(t, c, slow.config(""))
	answer := make(chan string)
	go func() {
		got, err := h.Post(t.Context(), webhook.Call{})
		answer <- fmt.Sprint(string(got), err)
	}()
	<-entered
	post(t, newHook(t, c, other.config("")))
	close(leave)
	if got := <-answer; got != "done<nil>" {
		t.Errorf("the call under way got %s", got)
	}
	<-slow.closed
}

func TestClosedClient(t *testing.T) {
	for name, evicted := range map[string]bool{"the only webhook": false, "an evicted one": true} {
		t.Run(name, func(t *testing.T) {
			entered := make(chan struct{})
			slow := startServer(t, serverOptions{}, func(_ http.ResponseWriter, r *http.Request) {
				close(entered)
				<-r.Context().Done()
			})
			other := startServer(t, serverOptions{}, func(http.ResponseWriter, *http.Request) {})
			c := newClient(t, webhook.Options{MaxTransports: 1})
			h := newHook(t, c, slow.config(""))
			failed := make(chan error)
			go func() {
				_, err := h.Post(t.Context(), webhook.Call{})
				failed <- err
			}()
			<-entered
			if evicted {
				post(t, newHook(t, c, other.config("")))
			}
			c.Close()
			if err := <-failed; !errors.Is(err, webhook.ErrClosed) {
				t.Errorf("the call under way got %v", err)
			}
			if _, err := h.Post(t.Context(), webhook.Call{}); !errors.Is(err, webhook.ErrClosed) {
				t.Errorf("a later call got %v", err)
			}
			<-slow.closed
		})
	}
}

func TestClosingLeavesNoConnectionAndNoGoroutine(t *testing.T) {
	for name, opts := range map[string]serverOptions{"HTTP/2": {}, "HTTP/1": {http1: true}} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, opts, func(http.ResponseWriter, *http.Request) {})
			for range 20 {
				c := webhook.NewClient(webhook.Options{})
				post(t, newHook(t, c, s.config("")))
				c.Close()
				<-s.closed
			}
			if stacks := leftBehind("http2ClientConn", "persistConn", "evenkeel/server/webhook.("); stacks != "" {
				t.Error("goroutines are left behind:\n" + stacks)
			}
		})
	}
}

func TestClosingEndsTheSearchForAService(t *testing.T) {
	entered := make(chan struct{})
	c := newClient(t, webhook.Options{Resolver: resolverFunc(func(ctx context.Context, _, _ string, _ int32) (string, error) {
		close(entered)
		<-ctx.Done()
		return "", ctx.Err()
	})})
	go func() {
		<-entered
		c.Close()
	}()
	_, err := newHook(t, c, webhook.Config{Service: &webhook.Service{Namespace: "n", Name: "s"}}).Post(t.Context(), webhook.Call{})
	if !errors.Is(err, webhook.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// A connection that is made too late is not kept.
func TestClosingEndsWhatIsBeingDialed(t *testing.T) {
	near, far := net.Pipe()
	entered, leave := make(chan struct{}), make(chan struct{})
	c := newClient(t, webhook.Options{Resolver: always("10.0.0.1:443")})
	c.SetDial(func(context.Context, string, string) (net.Conn, error) {
		close(entered)
		<-leave
		return near, nil
	})
	go func() {
		<-entered
		c.Close()
		close(leave)
	}()
	_, err := newHook(t, c, webhook.Config{Service: &webhook.Service{Namespace: "n", Name: "s"}}).Post(t.Context(), webhook.Call{})
	if !errors.Is(err, webhook.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection is open: %v", err)
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	entered := make(chan struct{})
	s := startServer(t, serverOptions{}, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	_, err := newHook(t, newClient(t, webhook.Options{}), s.config("")).Post(ctx, webhook.Call{})
	want := fmt.Sprintf(`Post "%s/?timeout=30s": context canceled`, s.URL)
	if err == nil || err.Error() != want || !errors.Is(err, context.Canceled) {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

// slowly are the ways to be slow, each until the caller is gone.
var slowly = map[string]http.HandlerFunc{
	"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"no end of the answer": func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "{")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	},
}

func TestSlowWebhookIsGivenUp(t *testing.T) {
	times := map[string]struct{ given, want time.Duration }{
		"by default": {0, 30 * time.Second},
		"when asked": {3 * time.Second, 3 * time.Second},
	}
	for how, handler := range slowly {
		for when, timeout := range times {
			t.Run(how+" "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					servePipes(t, handler, func(h *webhook.Hook, _ <-chan http.ConnState) {
						start := time.Now()
						_, err := h.Post(t.Context(), webhook.Call{Timeout: timeout.given})
						want := fmt.Sprintf(`Post "https://hook.default.svc:443/?timeout=%v": no answer within %[1]v: context deadline exceeded`, timeout.want)
						if err == nil || err.Error() != want || !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("got  %v\nwant %v", err, want)
						}
						if took := time.Since(start); took != timeout.want {
							t.Errorf("the call took %v", took)
						}
					})
				})
			})
		}
	}
}

func TestDeadlineOfTheContextComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servePipes(t, slowly["no answer"], func(h *webhook.Hook, _ <-chan http.ConnState) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			_, err := h.Post(ctx, webhook.Call{})
			if took := time.Since(start); took != time.Second || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v after %v", err, took)
			}
		})
	})
}

func TestSlowResolverIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := webhook.NewClient(webhook.Options{Resolver: resolverFunc(func(ctx context.Context, _, _ string, _ int32) (string, error) {
			<-ctx.Done()
			return "", errors.New("gave up")
		})})
		h := newHook(t, c, webhook.Config{Service: &webhook.Service{Namespace: "default", Name: "hook"}})
		start := time.Now()
		_, err := h.Post(t.Context(), webhook.Call{})
		if took := time.Since(start); took != webhook.DefaultTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v after %v", err, took)
		}
	})
}

func TestUnusedConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servePipes(t, func(http.ResponseWriter, *http.Request) {}, func(h *webhook.Hook, states <-chan http.ConnState) {
			post(t, h)
			start := time.Now()
			for state := range states {
				if state == http.StateClosed {
					break
				}
			}
			if idle := time.Since(start); idle != 90*time.Second {
				t.Errorf("the connection was closed after %v", idle)
			}
		})
	})
}

// mutableConn loses what is written once it is muted, as a cut cable does.
type mutableConn struct {
	net.Conn
	muted  atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (c *mutableConn) Write(p []byte) (int, error) {
	if c.muted.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *mutableConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func TestConnectionThatWentSilentIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }
		var dialed []*mutableConn
		wrap := func(c net.Conn) net.Conn {
			dialed = append(dialed, &mutableConn{Conn: c, closed: make(chan struct{})})
			return dialed[len(dialed)-1]
		}
		servePipesThrough(t, wrap, handler, func(h *webhook.Hook, _ <-chan http.ConnState) {
			post(t, h)
			dialed[0].muted.Store(true)
			start := time.Now()
			if _, err := h.Post(t.Context(), webhook.Call{Timeout: 10 * time.Second}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the call into the void got %v", err)
			}
			<-dialed[0].closed
			if took := time.Since(start); took > time.Minute {
				t.Errorf("the connection was given up after %v", took)
			}
			if got := post(t, h); got != "{}" || len(dialed) != 2 {
				t.Errorf("got %s on connection %d", got, len(dialed))
			}
		})
	})
}
