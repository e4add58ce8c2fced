package kubectl

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	// Not called: it makes go test run anew when the server has changed.
	_ "github.com/even-keel/evenkeel/cli"
)

// buildPrograms builds evenkeel and kubectl as we ship them, and greeter, which pods
// run, and returns the folder that they are in. The folder is kept, for go links nothing that is
// there and current. With the race detector on, the server is under it too.
func buildPrograms() (string, error) {
	dir, err := filepath.Abs(filepath.Join("..", "..", "bin", "test-kubectl"))
	if err != nil {
		return "", err
	}
	if err := build(dir); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "evenkeel")
	if raced {
		dir += "-race"
		if err := build(dir, "-race"); err != nil {
			return "", err
		}
	}
	if out, err := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "greeter"), "./greeter").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build greeter: %w\n%s", err, out)
	}
	link := filepath.Join(dir, "kubectl")
	_ = os.Remove(link)
	return dir, os.Symlink(program, link)
}

// build builds a program of ours as `make build` does, so that nothing is
// compiled twice.
func build(dir string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-o", filepath.Join(dir, "evenkeel")}, flags...)
	cmd := exec.Command("go", append(args, "./cmd/evenkeel")...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if len(flags) > 0 {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // the race detector wants it
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build evenkeel: %w\n%s", err, out)
	}
	return nil
}
