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
)

// handler returns what answers all requests. Watches end with their context.
func (s *Server) handler(watches context.Context) http.Handler {
	g := newGate(s.config.Limits)
	routes := s.routes()

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache, private")
		info := rest.Describe(r)
		m := s.meters.begin(w, s.api.Known(info))
		defer m.end()
		defer s.recover(m, r)
		leave, ok := g.enter(r, info.Watch)
		if ok && info.Watch && watches.Err() != nil {
			// It would end at once, and informers would read the whole state again.
			leave()
			ok = false
		}
		if !ok {
			err := apierrors.NewTooManyRequests("too many requests, please try again later", 1)
			rest.SendError(m, r, err)
			return
		}
		defer leave()
		if info.Watch {
			s.streams.Add(1)
			defer s.streams.Done()
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(watches, cancel)()
			r = r.WithContext(ctx)
		} else {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.config.Limits.BodyWithin))
		}
		if r = s.admit(m, r, info); r != nil {
			routes(m, r)
		}
	})
}

// routes finds who answers a path. Paths are taken as they are: a ServeMux would
// redirect those that are not clean, where the real server knows no such path.
func (s *Server) routes() http.HandlerFunc {
	exact := map[string]http.Handler{
		"/version": http.HandlerFunc(s.serveVersion), "/version/": http.HandlerFunc(s.serveVersion),
		"/metrics": s.meters.handler(), rest.WritesPath: http.HandlerFunc(s.api.ServeWrites),
	}
	for path, body := range s.config.Documents {
		exact[path] = document(path, body)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if h, ok := exact[r.URL.Path]; ok {
			h.ServeHTTP(w, r)
			return
		}
		for _, c := range healthPaths {
			if check, ok := strings.CutPrefix(r.URL.Path, c); ok && (check == "" || check[0] == '/') {
				s.serveHealth(w, r, c[1:], strings.TrimPrefix(check, "/"))
				return
			}
		}
		s.api.ServeHTTP(w, r)
	}
}

// document answers with the same bytes to everybody.
func document(path string, body []byte) http.Handler {
	media := "application/json"
	if strings.HasSuffix(path, "/jwks") {
		media = "application/jwk-set+json"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		w.Header().Set("Content-Type", media)
		_, _ = w.Write(body)
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
	user, refused, err := s.impersonated(r.Context(), r, user)
	if refused != nil || err != nil {
		if refused == nil {
			refused = &auth.Attributes{Verb: "impersonate", Resource: "users"}
		}
		rest.SendError(w, r, rest.Forbidden(user, *refused, ""))
		return nil
	}
	r = r.WithContext(auth.WithUser(r.Context(), user))
	decision, err := s.config.Authorizer.Authorize(r.Context(), user, info.Attributes())
	if err != nil {
		s.log.Error("authorization failed", "user", user.Name, "path", r.URL.Path, "error", err)
	}
	if err != nil || !decision.Allowed {
		w.Header().Set("X-Content-Type-Options", "nosniff")
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

func (s *Server) serveVersion(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		rest.SendError(w, r, rest.ErrMethodNotAllowed())
		return
	}
	body, err := json.MarshalIndent(s.config.Version, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}
