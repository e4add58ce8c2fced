package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"unicode"
)

// consoleHandler writes records for people to read, a line each:
//
//	15:04:05 INFO  opened the store dir=/var/lib/evenkeel revision=42
//
// Attributes look exactly as slog's text handler writes them, because it does
// write them: it gets each record with no time, level INFO and an empty
// message, and the constant start of what it then writes is cut off.
type consoleHandler struct {
	attrs  slog.Handler // writes to sink.text
	colour bool
	sink   *consoleSink // shared by all handlers made from one
}

// consoleSink puts lines together and writes each with one call.
type consoleSink struct {
	w io.Writer

	mu   sync.Mutex
	text bytes.Buffer // what attrs wrote
	line []byte
}

// textHead is what slog's text handler puts before the attributes.
const textHead = `level=INFO msg=""`

func newConsoleHandler(w io.Writer, level slog.Leveler, colour bool) *consoleHandler {
	sink := &consoleSink{w: w}
	attrs := slog.NewTextHandler(&sink.text, &slog.HandlerOptions{Level: level})
	return &consoleHandler{attrs: attrs, colour: colour, sink: sink}
}

// Enabled, Handle, WithAttrs and WithGroup make it a slog.Handler.
func (h *consoleHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.attrs.Enabled(ctx, level)
}

// WithAttrs adds attributes to every record.
func (h *consoleHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &consoleHandler{attrs: h.attrs.WithAttrs(attrs), colour: h.colour, sink: h.sink}
}

// WithGroup qualifies the attributes that follow.
func (h *consoleHandler) WithGroup(name string) slog.Handler {
	return &consoleHandler{attrs: h.attrs.WithGroup(name), colour: h.colour, sink: h.sink}
}

// Handle writes one line.
func (h *consoleHandler) Handle(ctx context.Context, r slog.Record) error {
	bare := slog.Record{Level: slog.LevelInfo}
	r.Attrs(func(a slog.Attr) bool {
		bare.AddAttrs(a)
		return true
	})
	s := h.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Reset()
	if err := h.attrs.Handle(ctx, bare); err != nil {
		return err
	}
	s.line = h.appendHead(s.line[:0], r)
	s.line = append(s.line, bytes.TrimPrefix(s.text.Bytes(), []byte(textHead))...)
	_, err := s.w.Write(s.line)
	return err
}

func (h *consoleHandler) appendHead(b []byte, r slog.Record) []byte {
	if !r.Time.IsZero() {
		b = h.appendColoured(b, dim, r.Time.Format("15:04:05"))
		b = append(b, ' ')
	}
	level := r.Level.String()
	b = h.appendColoured(b, levelColour(r.Level), level)
	for range max(1, len("DEBUG ")-len(level)) {
		b = append(b, ' ')
	}
	return append(b, printable(r.Message)...)
}

const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	green  = "\x1b[32m"
	dim    = "\x1b[2m"
	plain  = "\x1b[0m"
)

func levelColour(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return red
	case l >= slog.LevelWarn:
		return yellow
	case l >= slog.LevelInfo:
		return green
	}
	return dim
}

func (h *consoleHandler) appendColoured(b []byte, colour, text string) []byte {
	if !h.colour {
		return append(b, text...)
	}
	return append(append(append(b, colour...), text...), plain...)
}

// printable escapes a message that would break its line or the terminal.
func printable(message string) string {
	for _, r := range message {
		if !unicode.IsPrint(r) {
			return strconv.Quote(message)
		}
	}
	return message
}
