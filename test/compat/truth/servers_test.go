package truth

import (
	"context"
	"crypto/tls"
	"errors"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/test/compat/cluster"
	"github.com/even-keel/evenkeel/test/peer"
)

// target is an API server that informers are held to.
type target struct {
	url   *url.URL
	admin *rest.Config
	// tls identifies an administrator.
	tls *tls.Config
	// forget has the server forget what is not quite new; nil if only time does.
	forget func(context.Context) error
}

func targetAt(t *testing.T, address string, c *auth.Credentials) *target {
	t.Helper()
	identity, err := tls.X509KeyPair(c.AdminCertPEM, c.AdminKeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return &target{
		url: &url.URL{Scheme: "https", Host: address},
		tls: &tls.Config{Certificates: []tls.Certificate{identity}, RootCAs: c.Pool(), MinVersion: tls.VersionTLS13},
		admin: &rest.Config{Host: "https://" + address, TLSClientConfig: rest.TLSClientConfig{
			CAData: c.CAPEM, CertData: c.AdminCertPEM, KeyData: c.AdminKeyPEM,
		}},
	}
}

// evenkeel is our server, on memory.
func evenkeel(t *testing.T) *target {
	t.Helper()
	s := cluster.Memory.Start(t)
	to := targetAt(t, s.Address, s.Credentials)
	to.forget = func(ctx context.Context) error {
		head, err := s.Store.Head(ctx)
		if err != nil {
			return err
		}
		if err := s.Store.Compact(ctx, head-20); !errors.Is(err, storage.ErrCompacted) {
			return err
		}
		return nil
	}
	return to
}

// kubernetes is kube-apiserver on an etcd of its own. The test is skipped if they
// have not been built.
func kubernetes(t *testing.T) *target {
	t.Helper()
	s := peer.Start(t)
	return targetAt(t, s.Address, s.Credentials)
}
