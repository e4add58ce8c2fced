package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/even-keel/evenkeel/node"
)

// Logs writes the log of a container; see [node.LogReader].
func (r *Runtime) Logs(ctx context.Context, id node.PodID, container string, o node.LogOptions, w io.Writer) error {
	p := r.find(id)
	if p == nil {
		return fmt.Errorf("%s: %w", id.Key, node.ErrUnknownPod)
	}
	folder := filepath.Join(p.folder, "containers", container)
	all := attempts(folder)
	if len(all) == 0 {
		return fmt.Errorf("%s of %s: %w", container, id.Key, node.ErrNoLog)
	}
	last := slices.Max(all)
	r.mu.Lock()
	c := p.containers[container]
	r.mu.Unlock()
	switch {
	case o.Previous && !slices.Contains(all, last-1):
		return fmt.Errorf("previous %s of %s: %w", container, id.Key, node.ErrNoLog)
	case o.Previous:
		return (&logFile{path: logPath(folder, last-1), closed: true}).read(ctx, o, w)
	case c != nil && int64(c.attempt) == last:
		return c.logs.read(ctx, o, w)
	}
	return (&logFile{path: logPath(folder, last), closed: true}).read(ctx, o, w)
}

// read writes what is in the log and, if it is to follow, what comes after, until
// the log is closed or ctx ends.
func (l *logFile) read(ctx context.Context, o node.LogOptions, w io.Writer) error {
	r := &logReader{log: l, options: o, to: w, left: o.Limit}
	defer r.leave()
	if err := r.begin(); err != nil {
		return err
	}
	for o.Follow && !r.full() {
		more, err := r.wait(ctx)
		if err != nil || !more {
			return err
		}
		if err := r.rest(r.write); err != nil {
			return err
		}
	}
	return nil
}

// logReader reads a log that may grow, and be put aside, while it does.
type logReader struct {
	log     *logFile
	options node.LogOptions
	to      io.Writer
	left    int64 // bytes, if there is a limit

	file    *os.File
	lines   *bufio.Reader
	part    string // of a line that is being written
	within  bool   // the last text was not the end of its line
	turn    int
	changed <-chan struct{}
	closed  bool
}

func (r *logReader) leave() {
	if r.file != nil {
		_ = r.file.Close()
	}
}

func (r *logReader) full() bool { return r.options.Limit > 0 && r.left <= 0 }

// open opens the present file, and, with old, the one before it.
func (r *logReader) open(withOld bool) (old *os.File, err error) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if withOld {
		if old, err = os.Open(aside(l.path)); ignoreMissing(err) != nil {
			return nil, err
		}
	}
	r.leave()
	r.turn, r.changed, r.closed = l.turn, l.changed, l.closed
	if r.file, err = os.Open(l.path); err != nil {
		return old, err
	}
	r.lines, r.part = bufio.NewReader(r.file), ""
	return old, nil
}

// begin writes what is there: all of it, or the last lines.
func (r *logReader) begin() error {
	old, err := r.open(true)
	if old != nil {
		defer func() { _ = old.Close() }()
	}
	if err != nil {
		return err
	}
	take := r.write
	var last []string
	tail := r.options.Tail
	if tail >= 0 {
		take = func(line string) error {
			if last = append(last, line); int64(len(last)) > tail {
				last = last[1:]
			}
			return nil
		}
	}
	if old != nil {
		present := r.lines
		r.lines = bufio.NewReader(old)
		if err := r.rest(take); err != nil {
			return err
		}
		r.lines, r.part = present, ""
	}
	if err := r.rest(take); err != nil {
		return err
	}
	for _, line := range last {
		if err := r.write(line); err != nil {
			return err
		}
	}
	return nil
}

// rest takes all lines up to the end, as far as it is.
func (r *logReader) rest(take func(string) error) error {
	for !r.full() {
		text, err := r.lines.ReadString('\n')
		r.part += text
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line := r.part
		r.part = ""
		if err := take(line); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for more, and reports whether there is any.
func (r *logReader) wait(ctx context.Context) (bool, error) {
	r.log.mu.Lock()
	turn, closed, changed := r.log.turn, r.log.closed, r.log.changed
	r.log.mu.Unlock()
	if changed == r.changed && !closed { // nothing since the last look
		select {
		case <-changed:
			return true, nil
		case <-ctx.Done():
			return false, nil
		}
	}
	if turn != r.turn { // the rest of what was put aside, and then the new one
		if err := r.rest(r.write); err != nil {
			return false, err
		}
		_, err := r.open(false)
		return true, err
	}
	r.changed = changed
	if r.closed {
		return false, nil
	}
	r.closed = closed
	return true, nil
}

// write writes a line if it is wanted.
func (r *logReader) write(line string) error {
	at, stream, mark, text, ok := cutLine(line)
	if !ok || r.options.Stream != "" && stream != r.options.Stream {
		return nil
	}
	if since := r.options.Since; !since.IsZero() {
		if when, err := time.Parse(time.RFC3339Nano, at); err == nil && when.Before(since) {
			return nil
		}
	}
	if r.options.Timestamps && !r.within {
		text = at + " " + text
	}
	if r.within = mark == "P"; r.within {
		text = strings.TrimSuffix(text, "\n")
	}
	if r.options.Limit > 0 {
		text = text[:min(int64(len(text)), r.left)]
		r.left -= int64(len(text))
	}
	_, err := io.WriteString(r.to, text)
	return err
}

// cutLine takes a line of a log file apart; the text has its end of line.
func cutLine(line string) (at, stream, mark, text string, ok bool) {
	at, line, _ = strings.Cut(line, " ")
	stream, line, _ = strings.Cut(line, " ")
	mark, text, ok = strings.Cut(line, " ")
	return at, stream, mark, text, ok
}
