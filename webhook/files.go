package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificates are what a server shows, and what API servers are to trust.
type certificates interface {
	// refresh is called before connections are accepted, and now and then. It returns the
	// CAs to trust, in PEM; none are those of the API server's system.
	refresh(ctx context.Context) (bundle []byte, err error)
	// get is for [tls.Config].GetCertificate.
	get(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// errNoCertificate is for connections that come before there is a certificate.
var errNoCertificate = errors.New("there is no certificate yet")

// fileCheck is how often files are read again, at the most.
const fileCheck = 10 * time.Second

// files are certificates of files, which are read again when a connection is made.
// While what they hold is of no use, the last that was stays.
type files struct {
	cert, key, ca string
	log           *slog.Logger

	mu      sync.Mutex
	checked time.Time
	current *tls.Certificate
}

func (f *files) refresh(context.Context) (bundle []byte, err error) {
	if err := f.load(); err != nil || f.ca == "" {
		return nil, err
	}
	return os.ReadFile(f.ca)
}

func (f *files) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	due := time.Since(f.checked) >= fileCheck
	f.mu.Unlock()
	if due {
		if err := f.load(); err != nil {
			f.log.Error("the certificate of the webhooks cannot be read, and stays as it was", "error", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		return nil, errNoCertificate
	}
	return f.current, nil
}

func (f *files) load() error {
	f.mu.Lock()
	f.checked = time.Now() // first: others need not read as well
	f.mu.Unlock()
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("load %s and %s: %w", f.cert, f.key, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = &pair
	return nil
}
