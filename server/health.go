package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/even-keel/evenkeel/storage"
)

var healthPaths = []string{"/healthz", "/livez", "/readyz"}

var errNotServing = errors.New("the server is starting or stopping")

// check is one thing that must be well.
type check struct {
	name string
	run  func(ctx context.Context) error
}

// checks are what a health path looks at. etcd is what tools ask for by name:
// here it is whatever store there is.
func (s *Server) checks(path string) []check {
	out := []check{
		{"ping", func(context.Context) error { return nil }},
		{"etcd", s.storageHealth},
	}
	if path == "readyz" {
		out = append(out, check{"serving", func(context.Context) error {
			if !s.ready.Load() {
				return errNotServing
			}
			return nil
		}})
	}
	return out
}

// serveHealth answers whether the server lives, or is ready: all checks of a
// path, or the one that is named below it.
func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request, path, only string) {
	checks := s.checks(path)
	if r.URL.Path != "/"+path {
		checks = slices.DeleteFunc(checks, func(c check) bool { return c.name != only })
	}
	if len(checks) == 0 {
		http.NotFound(w, r)
		return
	}
	report, failed := s.report(r.Context(), checks, r.URL.Query()["exclude"])
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if only == "" || failed {
		h.Set("X-Content-Type-Options", "nosniff")
	}
	switch {
	case failed:
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprintf(w, "%s%s check failed\n", report, path)
	case r.URL.Query().Has("verbose") && only == "":
		_, _ = fmt.Fprintf(w, "%s%s check passed\n", report, path)
	default:
		_, _ = fmt.Fprint(w, "ok")
	}
}

// report runs checks and says a line about each. Why one failed is for the log:
// anybody may ask.
func (s *Server) report(ctx context.Context, checks []check, exclude []string) (lines string, failed bool) {
	var out strings.Builder
	for _, c := range checks {
		if slices.Contains(exclude, c.name) {
			fmt.Fprintf(&out, "[+]%s excluded: ok\n", c.name)
			continue
		}
		if err := c.run(ctx); err != nil {
			failed = true
			s.log.Warn("a health check failed", "check", c.name, "error", err)
			fmt.Fprintf(&out, "[-]%s failed: reason withheld\n", c.name)
			continue
		}
		fmt.Fprintf(&out, "[+]%s ok\n", c.name)
	}
	return out.String(), failed
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
