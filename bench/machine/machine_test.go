//go:build linux

package machine

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestKilledChildTakesItsChildrenAlong(t *testing.T) {
	c, err := Start(t.TempDir(), "shell", "/bin/sh", "-c", "sleep 1000 & echo $!; wait")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Kill()
	deadline := time.Now().Add(10 * time.Second)
	grandchild := ""
	for grandchild == "" && time.Now().Before(deadline) {
		grandchild = c.LastWords()
	}
	c.Kill()
	state := "running"
	for state != "" && state[0] != 'Z' && time.Now().Before(deadline) { // a zombie waits for its new parent
		state = procLine("/proc/"+grandchild+"/status", "State")
	}
	if grandchild == "" || (state != "" && state[0] != 'Z') {
		t.Errorf("process %q lives on in state %q", grandchild, state)
	}
	if err := c.Failed(); err == nil || !strings.Contains(err.Error(), "shell ended: signal: killed") {
		t.Errorf("it failed with %v", err)
	}
}

func TestChildThatIsStopped(t *testing.T) {
	c, err := Start(t.TempDir(), "sleep", "sleep", "1000")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Failed(); err != nil {
		t.Errorf("it runs, and %v", err)
	}
	if used, err := (Family{c}).Resident(); err != nil || used == 0 {
		t.Errorf("its memory is %d, %v", used, err)
	}
	if _, err := (Family{c}).CPU(); err != nil {
		t.Error(err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	if status := c.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended by %v", c.cmd.ProcessState)
	}
}

func TestKubeconfigWithoutIdentity(t *testing.T) {
	_, err := parseKubeconfig("clusters:\n- cluster:\n    certificate-authority-data: Q0E=\n")
	if err == nil || !strings.Contains(err.Error(), "client-certificate-data") {
		t.Errorf("got %v", err)
	}
}

func TestAPoolOfNothing(t *testing.T) {
	if _, err := poolOf([]byte("nothing")); err == nil {
		t.Error("a pool was made of nothing")
	}
}

func TestSizeOfAFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", filepath.Join("inner", "b")} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if size, err := SizeOf(dir); err != nil || size < 2<<20 || size > 3<<20 {
		t.Errorf("it is %d, %v", size, err)
	}
	if size, err := SizeOf(filepath.Join(dir, "none")); err != nil || size != 0 {
		t.Errorf("a folder that is not is %d, %v", size, err)
	}
}
