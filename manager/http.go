package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// serve answers HTTP requests until the stage ends.
func (m *Manager) serve(in *stage) error {
	l, err := net.Listen("tcp", m.opts.Listen)
	if err != nil {
		return fmt.Errorf("listen for health checks and metrics: %w", err)
	}
	s := &http.Server{Handler: m.handler(), ReadHeaderTimeout: 10 * time.Second}
	m.opts.Logger.Info("serving health checks, metrics and /debug/evenkeel", "address", l.Addr().String())
	in.run("http", func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = s.Close() })
		defer stop()
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return nil
}

func (m *Manager) handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/livez", "/healthz"} {
		mux.HandleFunc("GET "+path, answerChecks(path, m.liveChecks))
		mux.HandleFunc("GET "+path+"/{check}", answerChecks(path, m.liveChecks))
	}
	mux.HandleFunc("GET /readyz", answerChecks("/readyz", m.readyChecks))
	mux.HandleFunc("GET /readyz/{check}", answerChecks("/readyz", m.readyChecks))
	mux.HandleFunc("GET /metrics", m.serveMetrics)
	mux.HandleFunc("GET /debug/evenkeel", m.serveDebug)
	return mux
}

// check is one reason for which a program may not be well.
type check struct {
	name string
	ask  func() error
}

// CheckLive adds a check to /livez: if it fails, the program should be restarted.
func (m *Manager) CheckLive(name string, ask func() error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live = append(m.live, check{name, ask})
}

// CheckReady adds a check to /readyz.
func (m *Manager) CheckReady(name string, ask func() error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = append(m.ready, check{name, ask})
}

func (m *Manager) liveChecks() []check {
	out := []check{{"ping", func() error { return nil }}}
	if m.elector != nil {
		out = append(out, check{"leader", func() error { return m.elector.Check(m.opts.Grace) }})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(out, m.live...)
}

func (m *Manager) readyChecks() []check {
	out := []check{{"informers", m.fresh}}
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(out, m.ready...)
}

// fresh is an error that names the informers which are not up to date.
func (m *Manager) fresh() error {
	var late []string
	for _, in := range m.Informers().Status() {
		if !in.Synced && in.Err == nil {
			late = append(late, in.Kind+": not synced")
		}
		for _, p := range in.Parts {
			if p.Err != nil && (!p.Synced || time.Since(p.Since) > m.opts.StaleAfter) {
				late = append(late, fmt.Sprintf("%s: since %s: %v", in.Kind, p.Since.UTC().Format(time.RFC3339), p.Err))
			}
		}
	}
	if len(late) > 0 {
		return errors.New(strings.Join(late, "; "))
	}
	return nil
}

// answerChecks answers as API servers do: with ok, or with a line for each check.
func answerChecks(path string, checks func() []check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path, "/")
		var lines strings.Builder
		asked, failed := 0, 0
		for _, c := range checks() {
			if only := r.PathValue("check"); only != "" && only != c.name {
				continue
			}
			asked++
			if err := c.ask(); err != nil {
				failed++
				fmt.Fprintf(&lines, "[-]%s failed: %v\n", c.name, err)
				continue
			}
			fmt.Fprintf(&lines, "[+]%s ok\n", c.name)
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case asked == 0:
			http.Error(w, "there is no such check", http.StatusNotFound)
		case failed > 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, "%s%s check failed\n", lines.String(), name)
		case r.URL.Query().Has("verbose"):
			fmt.Fprintf(w, "%s%s check passed\n", lines.String(), name)
		default:
			fmt.Fprint(w, "ok")
		}
	}
}
