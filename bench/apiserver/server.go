//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// system is a server that can be started.
type system struct {
	name string
	// start starts it on a folder, which may hold the data of an earlier start,
	// and returns once it is ready. Who calls it ends the processes.
	start func(ctx context.Context, dir string) (*instance, error)
}

// instance is a server that runs.
type instance struct {
	family  family
	address string
	client  *tls.Config // with the identity of an administrator
	took    time.Duration
}

// startWithin is how long a server may take to become ready.
const startWithin = 2 * time.Minute

// freeAddress is one of the loopback that nobody listens on at the moment.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// waitReady polls a URL until it answers 200, on one connection as soon as there
// is one. It asks every 2 ms at first, and rarely once it does not matter.
func waitReady(ctx context.Context, f family, url string, config *tls.Config) error {
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
			return fmt.Errorf("wait for %s: %w (last: %v)\n%s", url, ctx.Err(), err, f[len(f)-1].lastWords())
		}
		if err := f.failed(); err != nil {
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

// probe trusts any certificate: readiness is asked for before the CA is known.
func probe() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
}

// clientTLS is the configuration of an administrator's connections.
func clientTLS(identity tls.Certificate, caPEM []byte) (*tls.Config, error) {
	pool, err := poolOf(caPEM)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{identity}, RootCAs: pool, ServerName: "127.0.0.1",
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
	}, nil
}
