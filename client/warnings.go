package client

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// warnedBound is how many warnings are remembered; further ones are not logged.
const warnedBound = 1000

// warnOnce logs each warning of a server once.
type warnOnce struct {
	log *slog.Logger

	mu   sync.Mutex
	seen map[string]bool
}

func (w *warnOnce) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code != 299 || text == "" || !w.isNew(text) {
		return
	}
	w.log.WarnContext(ctx, "the API server warns", "warning", text)
}

func (w *warnOnce) isNew(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[text] || len(w.seen) >= warnedBound {
		return false
	}
	w.seen[text] = true
	return true
}

// plainWarnings is a handler of the kind that knows no context.
type plainWarnings struct{ rest.WarningHandler }

func (p plainWarnings) HandleWarningHeaderWithContext(_ context.Context, code int, agent, text string) {
	p.HandleWarningHeader(code, agent, text)
}

func warningsOf(cfg *rest.Config, log *slog.Logger) rest.WarningHandlerWithContext {
	switch {
	case cfg.WarningHandlerWithContext != nil:
		return cfg.WarningHandlerWithContext
	case cfg.WarningHandler != nil:
		return plainWarnings{cfg.WarningHandler}
	}
	return &warnOnce{log: log, seen: map[string]bool{}}
}

func (c *Conn) handleWarnings(ctx context.Context, h http.Header) {
	headers := h["Warning"]
	if len(headers) == 0 {
		return
	}
	warnings, _ := utilnet.ParseWarningHeaders(headers)
	for _, w := range warnings {
		c.warn.HandleWarningHeaderWithContext(ctx, w.Code, w.Agent, w.Text)
	}
}
