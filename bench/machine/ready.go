//go:build linux

package machine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// startWithin is how long a server may take to become ready.
const startWithin = 2 * time.Minute

// FreeAddress is one of the loopback that nobody listens on at the moment.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// WaitReady polls a URL until it answers 200, on one connection as soon as there
// is one. It asks every 2 ms at first, and rarely once it does not matter.
func WaitReady(ctx context.Context, f Family, url string, config *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	begun := time.Now()
	for {
		ok, err := answersOK(ctx, client, url)
		if ok {
			return nil
		}
		pause := 2 * time.Millisecond
		if time.Since(begun) > 500*time.Millisecond {
			pause = 10 * time.Millisecond
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (last: %v)\n%s", url, ctx.Err(), err, f[len(f)-1].LastWords())
		}
		if err := f.Failed(); err != nil {
			return err
		}
	}
}

func answersOK(ctx context.Context, client *http.Client, url string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return false, err
	}
	if err := answer.Body.Close(); err != nil {
		return false, err
	}
	return answer.StatusCode == http.StatusOK, errors.New(answer.Status)
}

// ClientTLS is the configuration of an administrator's connections.
func ClientTLS(identity tls.Certificate, caPEM []byte) (*tls.Config, error) {
	pool, err := poolOf(caPEM)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{identity}, RootCAs: pool, ServerName: "127.0.0.1",
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
	}, nil
}

func poolOf(caPEM []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(caPEM) {
		return nil, errors.New("no certificate in the CA's PEM")
	}
	return pool, nil
}
