package cluster

import (
	"context"
	"log/slog"
	"testing"
)

// log hands what a server logs to its test. An error fails it: servers log
// one for each answer that says that they are to blame.
type log struct {
	t        testing.TB
	expected bool
}

func (l *log) logger() *slog.Logger {
	return slog.New(&handler{slog.NewTextHandler(l.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}), l})
}

type handler struct {
	slog.Handler
	log *log
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError && !h.log.expected {
		h.log.t.Errorf("the server logged an error: %s", r.Message)
	}
	return h.Handler.Handle(ctx, r)
}
