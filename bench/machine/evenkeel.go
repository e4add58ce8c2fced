//go:build linux

package machine

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// BuildEvenkeel builds the tree that this program belongs to, as make build does,
// and returns the program and what it calls itself. The program is a copy, as one that
// is installed: the system may keep a file as the linker wrote it in pages of 2 MB, all
// of which count as resident when a byte is read.
func BuildEvenkeel(ctx context.Context, root, dir string) (program, version string, err error) {
	program = filepath.Join(dir, "evenkeel")
	describe := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty")
	describe.Dir = root
	out, err := describe.Output()
	if version = strings.TrimSpace(string(out)); err != nil {
		version = "unknown" // a tree without git can be measured too
	}
	linked := program + ".linked"
	if err := Build(ctx, root, "./cmd/evenkeel", linked); err != nil {
		return "", "", err
	}
	return program, version, install(linked, program)
}

// install puts a copy of a program in another place, and removes the program.
func install(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("install %s: %w", to, err)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err == nil {
		// In small pieces: what is written at once may be kept in one page.
		_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 32<<10))
		err = errors.Join(err, out.Close())
	}
	if err = errors.Join(err, in.Close(), os.Remove(from)); err != nil {
		return fmt.Errorf("install %s: %w", to, err)
	}
	return nil
}

// Build builds a package of the module in a folder.
func Build(ctx context.Context, folder, pkg, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, pkg)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// ModuleRoot is the folder of the tree that is measured.
func ModuleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/even-keel/evenkeel").Output()
	if err != nil {
		return "", fmt.Errorf("find the tree to measure (run this in its folder bench): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Server is an Evenkeel that runs.
type Server struct {
	*Child
	// Data is the folder of its store.
	Address, Kubeconfig, Data string
	// Admin is the configuration of an administrator's connections.
	Admin *tls.Config
	// Took is how long it took to be ready.
	Took time.Duration
}

// APIAlone are the flags of a server without controllers, scheduler and nodes.
var APIAlone = []string{"--controllers", "none", "--nodes", "0"}

// Serve starts our control plane on the embedded store, with its data in a folder and
// by default with everything on, and returns once it is ready. Who calls it ends it.
func Serve(ctx context.Context, program, dir string, flags ...string) (*Server, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	c, err := Start(dir, "evenkeel", program, append([]string{"serve", "--data-dir", data, "--listen", address}, flags...)...)
	if err != nil {
		return nil, err
	}
	s := &Server{Child: c, Address: address, Kubeconfig: filepath.Join(data, "admin.kubeconfig"), Data: data}
	if err = WaitReady(ctx, Family{c}, "https://"+address+"/readyz", probe()); err == nil {
		s.Took = time.Since(c.Started)
		s.Admin, err = fromKubeconfig(ctx, s.Kubeconfig, address)
	}
	if err != nil {
		c.Kill()
		return nil, err
	}
	return s, nil
}

// fromKubeconfig waits for a kubeconfig of this address, which is written after
// the server is ready.
func fromKubeconfig(ctx context.Context, file, address string) (*tls.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), address) {
			return parseKubeconfig(string(text))
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s with %s: %w", file, address, ctx.Err())
		}
	}
}

// parseKubeconfig reads a kubeconfig of one cluster and one user, data inside.
func parseKubeconfig(text string) (*tls.Config, error) {
	var fields [3][]byte
	for i, key := range []string{"certificate-authority-data", "client-certificate-data", "client-key-data"} {
		match := regexp.MustCompile(`(?m)^\s*` + key + `:\s*"?([A-Za-z0-9+/=]+)"?\s*$`).FindStringSubmatch(text)
		if match == nil {
			return nil, fmt.Errorf("the kubeconfig has no %s", key)
		}
		var err error
		if fields[i], err = base64.StdEncoding.DecodeString(match[1]); err != nil {
			return nil, fmt.Errorf("the kubeconfig's %s: %w", key, err)
		}
	}
	identity, err := tls.X509KeyPair(fields[1], fields[2])
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig's identity: %w", err)
	}
	return ClientTLS(identity, fields[0])
}

// probe trusts any certificate: readiness is asked for before the CA is known.
func probe() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
}
