package etcd

import (
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/even-keel/evenkeel/storage"
)

const (
	defaultPrefix         = "/evenkeel/"
	defaultDialTimeout    = 5 * time.Second
	defaultRequestTimeout = 10 * time.Second

	// maxPrefixBytes keeps a transaction, which names its key three times,
	// within the 16 KiB that storage.MaxValueBytes sets aside for it.
	maxPrefixBytes = 512
)

// Options say how to reach an etcd cluster.
type Options struct {
	// Endpoints are the client URLs of the members, such as
	// https://10.0.0.1:2379. Either all of them use TLS or none does.
	Endpoints []string
	// TLS is used for endpoints that do not say http://. Without it, https://
	// endpoints are checked against the system's roots. See [TLSFiles].
	TLS *tls.Config
	// Username and Password are for clusters with authentication enabled.
	Username, Password string
	// Prefix comes before every key; the default is "/evenkeel/". A slash is
	// added where none ends it, so that no prefix is the beginning of another.
	Prefix string
	// DialTimeout bounds how long Open waits for an answer; the default is 5s.
	DialTimeout time.Duration
	// RequestTimeout bounds each request, on top of the caller's context; the
	// default is 10s.
	RequestTimeout time.Duration
}

// complete fills in the defaults and refuses what cannot work.
func (o Options) complete() (Options, error) {
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	if !strings.HasSuffix(o.Prefix, "/") {
		o.Prefix += "/"
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = defaultDialTimeout
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = defaultRequestTimeout
	}
	switch {
	case len(o.Endpoints) == 0:
		return o, fmt.Errorf("no endpoints were given: %w", storage.ErrInvalid)
	case len(o.Prefix) > maxPrefixBytes:
		return o, fmt.Errorf("prefix of %d bytes, at most %d are allowed: %w", len(o.Prefix), maxPrefixBytes, storage.ErrInvalid)
	case (o.Username == "") != (o.Password == ""):
		return o, fmt.Errorf("a user and a password come together, one of them is empty: %w", storage.ErrInvalid)
	}
	return o, o.checkSchemes()
}

// checkSchemes refuses endpoints with which the client would quietly leave TLS
// away: it looks at the first endpoint and treats all like it.
func (o Options) checkSchemes() error {
	first := o.secure(o.Endpoints[0])
	for _, endpoint := range o.Endpoints {
		switch {
		case endpoint == "":
			return fmt.Errorf("an endpoint is empty: %w", storage.ErrInvalid)
		case o.secure(endpoint) != first:
			return fmt.Errorf("endpoints %s and %s: either all use TLS or none does: %w", o.Endpoints[0], endpoint, storage.ErrInvalid)
		case o.TLS != nil && !o.secure(endpoint):
			return fmt.Errorf("endpoint %s is plain text but TLS is configured, say https://: %w", endpoint, storage.ErrInvalid)
		}
	}
	return nil
}

func (o Options) secure(endpoint string) bool {
	switch scheme, _, _ := strings.Cut(endpoint, ":"); scheme {
	case "https", "unixs":
		return true
	case "http":
		return false
	default:
		return o.TLS != nil
	}
}
