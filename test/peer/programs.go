package peer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// programs are the files of kube-apiserver and etcd.
type programs struct{ apiserver, etcd string }

// findPrograms finds what EVENKEEL_PEER_DIR names, or what `make bench` has built.
func findPrograms() (programs, error) {
	dir := os.Getenv("EVENKEEL_PEER_DIR")
	if dir == "" {
		var err error
		if dir, err = benchCache(); err != nil {
			return programs{}, err
		}
	}
	p := programs{filepath.Join(dir, "kube-apiserver"), filepath.Join(dir, "etcd")}
	for _, file := range []string{p.apiserver, p.etcd} {
		if _, err := os.Stat(file); err != nil {
			return p, fmt.Errorf("%w: set EVENKEEL_PEER_DIR to a folder that has kube-apiserver and etcd, or run make bench once", err)
		}
	}
	return p, nil
}

// benchCache is where bench/apiserver keeps what it has built.
func benchCache() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	module, err := peerModule()
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

// peerModule is the folder of the module that pins them, and that bench builds them
// from: the one of the tree that the test is in.
func peerModule() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		module := filepath.Join(dir, "bench", "peer")
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			return module, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no folder above %s has bench/peer", here)
		}
	}
}
