package kubectl

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	// Not called: it makes go test run anew when the server has changed.
	_ "github.com/even-keel/evenkeel/cli"
)

// buildPrograms builds evenkeel and kubectl as we ship them, and returns the
// folder that they are in. The folder is kept, for go links nothing that is
// there and current. With the race detector on, the server is under it too.
func buildPrograms() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "evenkeel", "test-kubectl")
	if err := build(dir, "evenkeel-kubectl"); err != nil {
		return "", err
	}
	if raced {
		dir += "-race"
		if err := build(dir, "evenkeel", "-race"); err != nil {
			return "", err
		}
		return dir, link(dir, "../test-kubectl/evenkeel-kubectl")
	}
	if err := build(dir, "evenkeel"); err != nil {
		return "", err
	}
	return dir, link(dir, "evenkeel-kubectl")
}

// build builds a program of ours as `make build` does, so that nothing is
// compiled twice.
func build(dir, name string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-o", filepath.Join(dir, name)}, flags...)
	cmd := exec.Command("go", append(args, "./cmd/"+name)...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if len(flags) > 0 {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // the race detector wants it
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

// link makes a program known by the names that scripts and evenkeel call it.
func link(dir, program string) error {
	for _, name := range []string{"kubectl", "evenkeel-kubectl"} {
		if name == program {
			continue
		}
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return nil
}
