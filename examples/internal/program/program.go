// Package program is for the tests of the examples: it runs one as its user would,
// and reads what it has printed.
package program

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Unreachable is the kubeconfig of a server that is not there.
func Unreachable(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: gone,
contexts: [{name: gone, context: {cluster: gone, user: nobody}}], users: [{name: nobody, user: {token: none}}],
clusters: [{name: gone, cluster: {server: "https://%s", insecure-skip-tls-verify: true}}]}`, l.Addr())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Transcript is what a program has printed so far. It is an [io.Writer].
type Transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (o *Transcript) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return o.text.Write(b)
}

func (o *Transcript) String() string {
	text, _ := o.read()
	return text
}

// read returns the text, and what is closed when there is more.
func (o *Transcript) read() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more == nil {
		o.more = make(chan struct{})
	}
	return o.text.String(), o.more
}

// Expect waits until a line is printed that has all words of this one, in order.
func (o *Transcript) Expect(t *testing.T, line string) {
	t.Helper()
	want := strings.Fields(line)
	for late := time.After(10 * time.Second); ; {
		text, more := o.read()
		for got := range strings.Lines(text) {
			if contains(strings.Fields(got), want) {
				return
			}
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("%q is not printed, but\n%s", line, text)
		}
	}
}

// contains reports whether want is in got, one word after the other.
func contains(got, want []string) bool {
	for ; len(got) >= len(want); got = got[1:] {
		if strings.Join(got[:len(want)], " ") == strings.Join(want, " ") {
			return true
		}
	}
	return false
}

// Program is a program that runs in the test's own process.
type Program struct {
	Out, Err Transcript
	ended    chan error
}

// Run runs a program. The test ends it, and fails if it has not ended well.
func Run(t *testing.T, main func(ctx context.Context, p *Program) error) *Program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Program{ended: make(chan error, 1)}
	go func() { p.ended <- main(ctx, p) }()
	t.Cleanup(func() {
		cancel()
		if err := <-p.ended; err != nil {
			t.Errorf("the program ended with %v", err)
		}
		if t.Failed() {
			t.Logf("it printed\n%s\nand to stderr\n%s", p.Out.String(), p.Err.String())
		}
	})
	return p
}
