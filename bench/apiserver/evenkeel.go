//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// buildEvenkeel builds the tree that this program belongs to, as make build does,
// and returns the program and what it calls itself.
func buildEvenkeel(ctx context.Context, root, dir string) (program, version string, err error) {
	program = filepath.Join(dir, "evenkeel")
	describe := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty")
	describe.Dir = root
	out, err := describe.Output()
	if version = strings.TrimSpace(string(out)); err != nil {
		version = "unknown" // a tree without git can be measured too
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/evenkeel")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("build evenkeel: %w\n%s", err, out)
	}
	return program, version, nil
}

// evenkeel is our server on the embedded store, as it is by default.
func evenkeel(program string) system {
	return system{name: "Evenkeel", start: func(ctx context.Context, dir string) (*instance, error) {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		data := filepath.Join(dir, "data")
		c, err := startChild(dir, "evenkeel", program, "serve", "--data-dir", data, "--listen", address)
		if err != nil {
			return nil, err
		}
		i := &instance{family: family{c}, address: address}
		if err := waitReady(ctx, i.family, "https://"+address+"/readyz", probe()); err != nil {
			i.family.kill()
			return nil, err
		}
		i.took = time.Since(c.started)
		if i.client, err = fromKubeconfig(ctx, filepath.Join(data, "admin.kubeconfig"), address); err != nil {
			i.family.kill()
			return nil, err
		}
		return i, nil
	}}
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
	return clientTLS(identity, fields[0])
}
