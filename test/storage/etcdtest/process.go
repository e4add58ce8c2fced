package etcdtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const (
	childVariable  = "EVENKEEL_ETCD_CHILD"
	endpointPrefix = "etcd serves at "
)

// StartProcess starts a one-member cluster in a process of its own, for tests
// that measure theirs, and returns its endpoint. The process is the test
// binary again, running the named test, which must call [ServeProcess].
func StartProcess(t testing.TB, test string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_, _ = io.Copy(io.Discard, stdout)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the etcd process: %v", err)
		}
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if endpoint, ok := strings.CutPrefix(lines.Text(), endpointPrefix); ok {
			return endpoint
		}
	}
	t.Fatalf("the etcd process did not start: %v", lines.Err())
	return ""
}

// ServeProcess is the other side of [StartProcess]: it serves until its parent
// ends. In a test that was not started by one it skips.
func ServeProcess(t *testing.T, options ...Option) {
	if os.Getenv(childVariable) == "" {
		t.Skip("serves another test, see etcdtest.StartProcess")
	}
	cluster := Start(t, 1, options...)
	fmt.Println(endpointPrefix + cluster.Endpoints()[0])
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Error(err)
	}
}
