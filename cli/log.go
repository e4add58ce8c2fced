package cli

import (
	"io"
	"log/slog"

	"golang.org/x/term"
)

// logLevels are the words of --log-level.
var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug,
	"info":  slog.LevelInfo,
	"warn":  slog.LevelWarn,
	"error": slog.LevelError,
}

// newLogHandler returns the handler for a format: auto, text or json.
func newLogHandler(w io.Writer, format string, level slog.Leveler, getenv func(string) string) slog.Handler {
	terminal := isTerminal(w)
	if format == "json" || format == "auto" && !terminal {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
	}
	return newConsoleHandler(w, level, terminal && wantsColour(getenv))
}

// wantsColour follows no-color.org, and leaves dumb terminals alone.
func wantsColour(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
