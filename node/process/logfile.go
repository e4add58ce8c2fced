package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxLine is how long a line may be before it is kept in parts.
const maxLine = 16 << 10

// logFile is the log of one container. A line of the file is a time, the stream, F
// for a whole line or P for a part of one, and the text. At its limit, the file is
// put aside, in the place of the one that was put aside before.
type logFile struct {
	path     string
	limit    int64
	copies   sync.WaitGroup // one for each pipe
	audience audience       // hears it as it comes

	mu      sync.Mutex
	pipes   []*os.File
	file    *os.File
	size    int64
	turn    int // how often the file was put aside
	closed  bool
	changed chan struct{} // closed when there is more, or no more to come
}

func newLogFile(folder string, attempt int32, limit int64) *logFile {
	return &logFile{path: logPath(folder, int64(attempt)), limit: limit, changed: make(chan struct{})}
}

func logPath(folder string, attempt int64) string {
	return filepath.Join(folder, strconv.FormatInt(attempt, 10)+".log")
}

// aside is where a file is put when it is full.
func aside(path string) string { return path + ".1" }

// open makes the file, and removes those of containers before the last.
func (l *logFile) open() error {
	for _, n := range attempts(filepath.Dir(l.path)) {
		if old := logPath(filepath.Dir(l.path), n); n < attemptOf(l.path)-1 {
			if err := errors.Join(os.Remove(old), ignoreMissing(os.Remove(aside(old)))); err != nil {
				return err
			}
		}
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	l.file = f
	return err
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// attempts are the containers that have logs in a folder, in no order.
func attempts(folder string) []int64 {
	files, _ := filepath.Glob(filepath.Join(folder, "*.log")) // the pattern is good
	var out []int64
	for _, f := range files {
		out = append(out, attemptOf(f))
	}
	return out
}

// attemptOf is the container whose log a file is; -1 if it is none's.
func attemptOf(path string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(path), ".log"), 10, 32)
	if err != nil {
		return -1
	}
	return n
}

// pipe returns a file for a process to write to, whose lines go to the log.
func (l *logFile) pipe(stream string) (*os.File, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.take(from, stream)
	return to, nil
}

// take has what comes from a file go to the log, and the file be closed with it.
func (l *logFile) take(from *os.File, stream string) {
	l.mu.Lock()
	l.pipes = append(l.pipes, from)
	l.mu.Unlock()
	l.copies.Go(func() { l.copy(from, stream) })
}

func (l *logFile) copy(from io.Reader, stream string) {
	lines := bufio.NewReaderSize(io.TeeReader(from, l.audience.of(stream)), maxLine)
	for {
		text, err := lines.ReadSlice('\n')
		if len(text) > 0 {
			l.add(stream, text)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// add adds a line, or a part of one. What cannot be written is lost: a container does
// not stop because a disk is full.
func (l *logFile) add(stream string, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mark := "P"
	if text[len(text)-1] == '\n' {
		mark, text = "F", text[:len(text)-1]
	}
	if l.size >= l.limit {
		l.putAside()
	}
	n, _ := fmt.Fprintf(l.file, "%s %s %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), stream, mark, text)
	l.size += int64(n)
	l.wake()
}

// putAside begins a new file; if that fails, the old one goes on.
func (l *logFile) putAside() {
	if os.Rename(l.path, aside(l.path)) != nil {
		return
	}
	next, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return
	}
	_ = l.file.Close()
	l.file, l.size = next, 0
	l.turn++
}

func (l *logFile) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// close ends the log once its pipes have ended, or after some time: processes that
// nobody knows may hold them.
func (l *logFile) close(after time.Duration) {
	cut := time.AfterFunc(after, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, p := range l.pipes {
			_ = p.SetReadDeadline(time.Now())
		}
	})
	l.copies.Wait()
	cut.Stop()
	l.audience.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.pipes {
		_ = p.Close()
	}
	_ = l.file.Close()
	l.closed = true
	l.wake()
}
