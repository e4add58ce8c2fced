//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// peerDir overrides where the peers' programs are; nothing is built then.
const peerDir = "EVENKEEL_PEER_DIR"

// findPeer returns the peers' programs. The first time it builds them, which
// takes ten minutes on two cores and network access for their sources.
func findPeer(ctx context.Context, module string, say io.Writer) (peerPrograms, error) {
	if dir := os.Getenv(peerDir); dir != "" {
		p := programsIn(dir)
		if !p.exist() {
			return p, fmt.Errorf("%s=%s has no kube-apiserver and etcd", peerDir, dir)
		}
		return p, nil
	}
	dir, err := peerCache(module)
	if err != nil {
		return peerPrograms{}, err
	}
	p := programsIn(dir)
	if p.exist() {
		return p, nil
	}
	fmt.Fprintf(say, "==> the peers are not built yet: building them into %s, once; this takes ten minutes or more\n", dir)
	return p, errors.Join(
		buildPeer(ctx, module, "k8s.io/kubernetes/cmd/kube-apiserver", p.apiserver, say),
		buildPeer(ctx, module, "go.etcd.io/etcd/server/v3", p.etcd, say))
}

func programsIn(dir string) peerPrograms {
	return peerPrograms{apiserver: filepath.Join(dir, "kube-apiserver"), etcd: filepath.Join(dir, "etcd")}
}

func (p peerPrograms) exist() bool {
	_, err1 := os.Stat(p.apiserver)
	_, err2 := os.Stat(p.etcd)
	return err1 == nil && err2 == nil
}

// peerCache is a folder for what is pinned now, and this compiler.
func peerCache(module string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		sum.Write(text)
	}
	sum.Write([]byte(runtime.Version()))
	return filepath.Join(cache, "evenkeel", "peer", hex.EncodeToString(sum.Sum(nil))[:16]), nil
}

// buildPeer builds a program under another name first, so that one cut short is
// never taken for whole.
func buildPeer(ctx context.Context, module, pkg, program string, say io.Writer) error {
	if _, err := os.Stat(program); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return err
	}
	partial := program + ".partial"
	begun := time.Now()
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-tags", "peer", "-o", partial, pkg)
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if err := showBuild(cmd, filepath.Base(program), say); err != nil {
		return fmt.Errorf("build %s: %w", pkg, err)
	}
	fmt.Fprintf(say, "==> built %s in %v\n", filepath.Base(program), time.Since(begun).Round(time.Second))
	return os.Rename(partial, program)
}

// showBuild runs a go build -v and counts its packages on a terminal. If it
// fails, the error has the last lines.
func showBuild(cmd *exec.Cmd, name string, say io.Writer) error {
	out, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var last []string
	lines, count := bufio.NewScanner(out), 0
	for lines.Scan() {
		count++
		last = append(last[max(0, len(last)-19):], lines.Text())
		if isTerminal(say) {
			fmt.Fprintf(say, "\r\x1b[K    %s: %d %s", name, count, lines.Text())
		}
	}
	if isTerminal(say) {
		fmt.Fprint(say, "\r\x1b[K")
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(last, "\n"))
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
