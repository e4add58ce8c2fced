package truth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// programs are the files of kube-apiserver and etcd.
type programs struct{ apiserver, etcd string }

// peerModule pins them, and is what bench builds them from.
const peerModule = "../../../bench/peer"

// findPrograms finds what EVENKEEL_PEER_DIR names, or what `make bench` has built.
// They take ten minutes to build, so that this does not.
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
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(peerModule, name))
		if err != nil {
			return "", err
		}
		sum.Write(text)
	}
	sum.Write([]byte(runtime.Version()))
	return filepath.Join(cache, "evenkeel", "peer", hex.EncodeToString(sum.Sum(nil))[:16]), nil
}

// startKubernetes starts both on a folder that has the credentials, as bench does
// but for etcd's syncs: a lost disk is no fault of this test. It returns the
// address of the API server once that is ready.
func startKubernetes(ctx context.Context, t *testing.T, p programs, dir string) string {
	t.Helper()
	client, peer, secure := freeAddress(t), freeAddress(t), freeAddress(t)
	ended := startChild(t, dir, p.etcd, "--data-dir="+filepath.Join(dir, "etcd"), "--name=truth", "--unsafe-no-fsync",
		"--listen-client-urls=http://"+client, "--advertise-client-urls=http://"+client,
		"--listen-peer-urls=http://"+peer, "--initial-advertise-peer-urls=http://"+peer,
		"--initial-cluster=truth=http://"+peer, "--log-level=warn")
	waitReady(ctx, t, "http://"+client+"/readyz", ended)
	_, port, err := net.SplitHostPort(secure)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	ended = startChild(t, dir, p.apiserver, "--etcd-servers=http://"+client,
		"--bind-address=127.0.0.1", "--secure-port="+port,
		"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none", // may not be the loopback
		"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--client-ca-file="+file("ca.crt"), "--cert-dir="+file("certs"),
		"--tls-cert-file="+file("apiserver.crt"), "--tls-private-key-file="+file("apiserver.key"),
		"--service-account-issuer=https://127.0.0.1", "--service-account-key-file="+file(tokenKey),
		"--service-account-signing-key-file="+file(tokenKey))
	waitReady(ctx, t, "https://"+secure+"/readyz", ended)
	return secure
}

// tokenKey is what service account tokens are signed with, in the form that
// kube-apiserver reads.
const tokenKey = "tokens.key"

func writeTokenKey(dir string, key crypto.Signer) error {
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return fmt.Errorf("the signing key is a %T", key)
	}
	der, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, tokenKey), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// startChild runs a program until the test ends; what it says goes to a file. The
// channel is closed when it has ended.
func startChild(t *testing.T, dir, program string, args ...string) <-chan struct{} {
	t.Helper()
	name := filepath.Base(program)
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // what they hold is thrown away
		<-ended
		_ = log.Close()
		if t.Failed() {
			t.Logf("the end of what %s said:\n%s", name, lastWords(log.Name()))
		}
	})
	return ended
}

func lastWords(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-1000):])
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// waitReady asks until the answer is 200. Whoever answers is trusted.
func waitReady(ctx context.Context, t *testing.T, url string, ended <-chan struct{}) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ended:
			t.Fatalf("%s: the program has ended", url)
		case <-ctx.Done():
			t.Fatalf("%s is not ready: %v", url, ctx.Err())
		}
	}
}
