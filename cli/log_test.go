package cli

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"
)

func TestConsoleHandlerKeepsTheRulesOfSlog(t *testing.T) {
	var out bytes.Buffer
	newHandler := func(*testing.T) slog.Handler {
		out.Reset()
		return newConsoleHandler(&out, slog.LevelInfo, false)
	}
	slogtest.Run(t, newHandler, func(t *testing.T) map[string]any {
		got, err := parseConsole(strings.TrimSuffix(out.String(), "\n"))
		if err != nil {
			t.Fatal(err)
		}
		return got
	})
}

var consoleLine = regexp.MustCompile(`^(?:(\d\d:\d\d:\d\d) )?([A-Z]+) +(.*?)((?: [^ =]+=(?:"(?:[^"\\]|\\.)*"|[^ "]*))*)$`)
var consoleAttr = regexp.MustCompile(` ([^ =]+)=("(?:[^"\\]|\\.)*"|[^ "]*)`)

// parseConsole reads a line as a slog record; a dotted key is a group.
func parseConsole(line string) (map[string]any, error) {
	m := consoleLine.FindStringSubmatch(line)
	if m == nil {
		return nil, fmt.Errorf("not a line of the console handler: %q", line)
	}
	record := map[string]any{slog.LevelKey: m[2], slog.MessageKey: m[3]}
	if m[1] != "" {
		record[slog.TimeKey] = m[1]
	}
	for _, attr := range consoleAttr.FindAllStringSubmatch(m[4], -1) {
		value := attr[2]
		if unquoted, err := strconv.Unquote(value); err == nil {
			value = unquoted
		}
		groups := strings.Split(attr[1], ".")
		into := record
		for _, g := range groups[:len(groups)-1] {
			if into[g] == nil {
				into[g] = map[string]any{}
			}
			into = into[g].(map[string]any)
		}
		into[groups[len(groups)-1]] = value
	}
	return record, nil
}

func TestConsoleHandlerLines(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		level   slog.Level
		message string
		attrs   []any
		want    string
	}{
		"info":                   {slog.LevelInfo, "store opened", []any{"revision", 42, "took", time.Second}, "15:04:05 INFO  store opened revision=42 took=1s\n"},
		"debug":                  {slog.LevelDebug, "synced", nil, "15:04:05 DEBUG synced\n"},
		"warn":                   {slog.LevelWarn, "slow", []any{"disk", "dm 0"}, "15:04:05 WARN  slow disk=\"dm 0\"\n"},
		"error":                  {slog.LevelError, "failed", []any{"err", errors.New("disk full")}, "15:04:05 ERROR failed err=\"disk full\"\n"},
		"a level between":        {slog.LevelInfo + 2, "notice", nil, "15:04:05 INFO+2 notice\n"},
		"group":                  {slog.LevelInfo, "request", []any{slog.Group("http", "code", 200)}, "15:04:05 INFO  request http.code=200\n"},
		"keys like the built-in": {slog.LevelInfo, "m", []any{"level", "x", "msg", "y", "time", "z"}, "15:04:05 INFO  m level=x msg=y time=z\n"},
		"a message of two lines": {slog.LevelInfo, "one\ntwo \x1b[31m", nil, "15:04:05 INFO  \"one\\ntwo \\x1b[31m\"\n"},
		"an empty message":       {slog.LevelInfo, "", []any{"a", 1}, "15:04:05 INFO   a=1\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := slog.NewRecord(at, tt.level, tt.message, 0)
			r.Add(tt.attrs...)
			if err := newConsoleHandler(&out, slog.LevelDebug, false).Handle(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if out.String() != tt.want {
				t.Errorf("got  %q\nwant %q", out.String(), tt.want)
			}
		})
	}
}

func TestConsoleHandlerColours(t *testing.T) {
	var out bytes.Buffer
	r := slog.NewRecord(time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), slog.LevelError, "failed", 0)
	if err := newConsoleHandler(&out, slog.LevelInfo, true).Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[2m15:04:05\x1b[0m \x1b[31mERROR\x1b[0m failed\n"; out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

// writes counts calls, so that a line in two pieces shows.
type writes struct{ lines []string }

func (w *writes) Write(p []byte) (int, error) {
	w.lines = append(w.lines, string(p))
	return len(p), nil
}

func TestConsoleHandlerWritesWholeLines(t *testing.T) {
	out := &writes{} // not locked: the handler must write one at a time
	log := slog.New(newConsoleHandler(out, slog.LevelInfo, false))
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			own := log.With("writer", n)
			for range 100 {
				own.Info("tick")
			}
		})
	}
	wg.Wait()
	if len(out.lines) != 800 {
		t.Errorf("%d writes for 800 records", len(out.lines))
	}
	whole := regexp.MustCompile(`^\d\d:\d\d:\d\d INFO  tick writer=\d\n$`)
	for _, line := range out.lines {
		if !whole.MatchString(line) {
			t.Fatalf("a line came out as %q", line)
		}
	}
}

func TestLogHandlerFormat(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal to test on: %v", err)
	}
	defer terminal.Close()
	tests := map[string]struct {
		format string
		onTTY  bool
		env    map[string]string
		want   string
	}{
		"auto on a terminal":         {"auto", true, nil, "colour"},
		"auto elsewhere":             {"auto", false, nil, "json"},
		"text on a terminal":         {"text", true, nil, "colour"},
		"text elsewhere":             {"text", false, nil, "plain"},
		"json on a terminal":         {"json", true, nil, "json"},
		"terminal with NO_COLOR":     {"auto", true, map[string]string{"NO_COLOR": "1"}, "plain"},
		"terminal with it empty":     {"auto", true, map[string]string{"NO_COLOR": ""}, "colour"},
		"a terminal without colours": {"auto", true, map[string]string{"TERM": "dumb"}, "plain"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			getenv := func(key string) string { return tt.env[key] }
			h := newLogHandler(&bytes.Buffer{}, tt.format, slog.LevelInfo, getenv)
			if tt.onTTY {
				h = newLogHandler(terminal, tt.format, slog.LevelInfo, getenv)
			}
			if got := kindOf(h); got != tt.want {
				t.Errorf("log is %s, want %s", got, tt.want)
			}
		})
	}
}

func kindOf(h slog.Handler) string {
	console, ok := h.(*consoleHandler)
	switch {
	case !ok:
		return "json"
	case console.colour:
		return "colour"
	}
	return "plain"
}
