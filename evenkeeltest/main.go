package evenkeeltest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Main is for TestMain: it runs the tests of a package and exits. If they have
// passed and goroutines of theirs are left behind, it shows them and fails.
func Main(m *testing.M) { os.Exit(runMain(m, os.Stderr)) }

// MainWith is [Main] with a server that all tests of the package share: use is
// given it before they run, and it is closed after.
func MainWith(m *testing.M, use func(*Server), opts ...Option) {
	os.Exit(runMain(withServer{m, use, opts}, os.Stderr))
}

// runner is a [testing.M].
type runner interface{ Run() int }

type withServer struct {
	runner
	use  func(*Server)
	opts []Option
}

func (w withServer) Run() int {
	s, err := Open(w.opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w.use(s)
	code := w.runner.Run()
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func runMain(m runner, out io.Writer) int {
	before := goroutines()
	code := m.Run()
	if code != 0 {
		return code
	}
	http.DefaultClient.CloseIdleConnections()
	left := leftBehind(before)
	for _, stack := range left {
		fmt.Fprintf(out, "left behind: %s\n\n", stack)
	}
	if len(left) > 0 {
		return 1
	}
	return 0
}

// leftBehind returns the stacks of goroutines that were not there before, and do
// not end within seconds: nobody tells when one does.
func leftBehind(before map[string]string) []string {
	var left []string
	for range 500 {
		left = nil
		for id, stack := range goroutines() {
			if _, old := before[id]; !old && !strings.Contains(stack, "os/signal.loop") {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return left
}

// goroutines returns the stacks of all, by their numbers.
func goroutines() map[string]string {
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(stacks()), "\n\n") {
		if words := strings.Fields(stack); len(words) > 1 {
			all[words[1]] = strings.TrimSpace(stack)
		}
	}
	return all
}

func stacks() []byte {
	for buf := make([]byte, 1<<20); ; buf = bytes.Repeat(buf, 2) {
		if n := runtime.Stack(buf, true); n < len(buf) {
			return buf[:n]
		}
	}
}
