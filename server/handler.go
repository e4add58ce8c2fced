package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/rest"
	"github.com/even-keel/evenkeel/storage"
)

// bodyWithin is how long a client may take to send a request.
const bodyWithin = time.Minute

// handler returns what answers all requests. Watches end with their context.
func (s *Server) handler(watches context.Context) http.Handler {
	g := newGate(s.config.Limits)
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		mux.HandleFunc(path, s.serveHealth)
		mux.HandleFunc(path+"/", s.serveHealth)
	}
	mux.HandleFunc("/version", s.serveVersion)
	mux.Handle("/metrics", s.meters.handler())
	for path, body := range s.config.Documents {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { sendJSON(w, body) })
	}
	mux.Handle("/", s.api)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := rest.Describe(r)
		m := s.meters.begin(w, info)
		defer m.end()
		defer s.recover(m, r)
		leave, ok := g.enter(r, info.Watch)
		if !ok {
			err := apierrors.NewTooManyRequests("too many requests, please try again later", 1)
			rest.SendError(m, r, err)
			return
		}
		defer leave()
		if info.Watch {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(watches, cancel)()
			r = r.WithContext(ctx)
		} else {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin))
		}
		if r = s.admit(m, r, info); r != nil {
			mux.ServeHTTP(m, r)
		}
	})
}

// admit finds out who makes a request and whether they may; it returns nil if
// the request has been answered with a refusal.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, info rest.Info) *http.Request {
	user, ok, err := s.config.Authenticator.Authenticate(r)
	if err != nil || !ok {
		rest.SendError(w, r, apierrors.NewUnauthorized("Unauthorized"))
		return nil
	}
	r = r.WithContext(auth.WithUser(r.Context(), user))
	decision, err := s.config.Authorizer.Authorize(r.Context(), user, info.Attributes())
	if err != nil {
		s.log.Error("authorization failed", "user", user.Name, "path", r.URL.Path, "error", err)
	}
	if err != nil || !decision.Allowed {
		rest.SendError(w, r, info.Forbidden(user, decision.Reason))
		return nil
	}
	return r
}

// recover turns a panic into an answer, if none has begun.
func (s *Server) recover(m *meter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p) // the connection is to be cut
	}
	s.log.Error("panic while answering", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if m.code != 0 {
		panic(http.ErrAbortHandler)
	}
	rest.SendError(m, r, apierrors.NewInternalError(fmt.Errorf("the server panicked: this is a bug of evenkeel")))
}

// serveHealth answers whether the server lives, or is ready.
func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) {
	checks := []struct {
		name string
		err  error
	}{{"ping", nil}, {"storage", s.storageHealth(r.Context())}}
	if strings.HasPrefix(r.URL.Path, "/readyz") {
		var err error
		if !s.ready.Load() {
			err = fmt.Errorf("the server is starting or stopping")
		}
		checks = append(checks, struct {
			name string
			err  error
		}{"serving", err})
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	var lines strings.Builder
	failed := false
	for _, c := range checks {
		if c.err != nil {
			failed = true
			fmt.Fprintf(&lines, "[-]%s failed: %v\n", c.name, c.err)
		} else {
			fmt.Fprintf(&lines, "[+]%s ok\n", c.name)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case failed:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%s%s check failed\n", &lines, name)
	case r.URL.Query().Has("verbose"):
		fmt.Fprintf(w, "%s%s check passed\n", &lines, name)
	default:
		fmt.Fprint(w, "ok")
	}
}

func (s *Server) storageHealth(ctx context.Context) error {
	checker, ok := s.config.Store.(storage.HealthChecker)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return checker.Health(ctx)
}

func (s *Server) serveVersion(w http.ResponseWriter, _ *http.Request) {
	body, err := json.MarshalIndent(s.config.Version, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sendJSON(w, body)
}

func sendJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}
