// Package peer runs kube-apiserver and etcd, for tests that hold our code against
// them. They are not built here: that takes ten minutes. `make bench` builds them,
// or EVENKEEL_PEER_DIR names a folder that has both.
package peer

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/server/auth"
)

// Server is a kube-apiserver on an etcd of its own. It ends with its test.
type Server struct {
	// Address is its host and port.
	Address string
	// Credentials are what it and its administrator identify themselves with.
	Credentials *auth.Credentials
}

// Start starts a server, and returns when it is ready. The test is skipped, loudly,
// if the programs have not been built.
func Start(t *testing.T) *Server {
	t.Helper()
	programs, err := findPrograms()
	if err != nil {
		t.Skipf("NOT HELD AGAINST kube-apiserver: %v", err)
	}
	dir := t.TempDir()
	credentials, err := auth.OpenCredentials(dir, auth.CredentialOptions{Hosts: []string{"127.0.0.1"}})
	if err == nil {
		err = writeTokenKey(dir, credentials.SigningKey)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return &Server{Address: start(ctx, t, programs, dir), Credentials: credentials}
}

// Config returns how the administrator reaches the server.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "https://" + s.Address, TLSClientConfig: rest.TLSClientConfig{
		CAData: s.Credentials.CAPEM, CertData: s.Credentials.AdminCertPEM, KeyData: s.Credentials.AdminKeyPEM,
	}}
}

// Kubeconfig writes the administrator's kubeconfig to a file, and returns its path.
func (s *Server) Kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text, err := s.Credentials.Kubeconfig("https://" + s.Address).Encode()
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatalf("write a kubeconfig: %v", err)
	}
	return path
}

// start starts both on a folder that has the credentials, as bench does
// but for etcd's syncs: a lost disk is no fault of this test. It returns the
// address of the API server once that is ready.
func start(ctx context.Context, t *testing.T, p programs, dir string) string {
	t.Helper()
	client, peers, secure := freeAddress(t), freeAddress(t), freeAddress(t)
	ended := startChild(t, dir, p.etcd, "--data-dir="+filepath.Join(dir, "etcd"), "--name=peer", "--unsafe-no-fsync",
		"--listen-client-urls=http://"+client, "--advertise-client-urls=http://"+client,
		"--listen-peer-urls=http://"+peers, "--initial-advertise-peer-urls=http://"+peers,
		"--initial-cluster=peer=http://"+peers, "--log-level=warn")
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
