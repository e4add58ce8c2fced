package kubectl

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/even-keel/evenkeel/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"evenkeel": evenkeel})
}

// evenkeel is the main of cmd/evenkeel. It is run by this test's own binary, so
// that a change of the server is a change of the test, and the race detector
// sees the server when it is asked to see the test.
func evenkeel() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(cli.Execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// buildKubectl builds the kubectl that we ship and returns the folder that it
// is in. The folder is kept, for go links nothing that is there and current.
func buildKubectl() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "evenkeel", "test-kubectl")
	program := filepath.Join(dir, "evenkeel-kubectl")
	// As `make build` does, so that go compiles nothing twice.
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, "./cmd/evenkeel-kubectl")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build kubectl: %w\n%s", err, out)
	}
	if err := os.Symlink(program, filepath.Join(dir, "kubectl")); err != nil && !os.IsExist(err) {
		return "", err
	}
	return dir, nil
}
