package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Config says where a webhook is: exactly one of URL and Service. It has the
// fields of the client configurations of both API groups that know webhooks.
type Config struct {
	URL     *string
	Service *Service
	// CABundle holds the roots that the webhook's certificate is checked
	// against, in PEM; the system's if it is empty or white space.
	CABundle []byte
}

// Service refers to a webhook in the cluster. A *ServiceReference of
// apiextensions or admissionregistration converts to a *Service.
type Service struct {
	Namespace string
	Name      string
	Path      *string
	// Port is 443 if it is nil.
	Port *int32
}

// Resolver finds the server behind a service. It is asked before every call,
// so that calls follow the service's endpoints, and may block until ctx ends.
// The address is a host and a port.
type Resolver interface {
	Resolve(ctx context.Context, namespace, name string, port int32) (address string, err error)
}

const defaultPort = 443

// host is what the server's certificate must be for.
func (s *Service) host() string { return s.Name + "." + s.Namespace + ".svc" }

func (s *Service) port() int32 {
	if s.Port == nil || *s.Port == 0 {
		return defaultPort
	}
	return *s.Port
}

// location is the URL that a webhook is known by, without its query.
func (c Config) location() (*url.URL, error) {
	switch {
	case c.URL != nil && c.Service != nil:
		return nil, errors.New("only one of url and service may be set")
	case c.Service != nil:
		return c.Service.location()
	case c.URL != nil && *c.URL != "":
		return parseURL(*c.URL)
	}
	return nil, errors.New("webhook configuration must have either service or URL")
}

func (s *Service) location() (*url.URL, error) {
	if s.Name == "" || s.Namespace == "" {
		return nil, errors.New("the service needs a name and a namespace")
	}
	if p := s.port(); p < 1 || p > 65535 {
		return nil, fmt.Errorf("port %d of the service is not between 1 and 65535", p)
	}
	path := "/"
	if s.Path != nil {
		path += strings.TrimPrefix(*s.Path, "/")
	}
	host := net.JoinHostPort(s.host(), strconv.Itoa(int(s.port())))
	return &url.URL{Scheme: "https", Host: host, Path: path}, nil
}

func parseURL(text string) (*url.URL, error) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("url must be a valid URL: %w", err)
	case u.User != nil: // first: no text may hold the password
		return nil, fmt.Errorf("url of %s: user information is not permitted in the URL", u.Host)
	case u.Scheme != "https":
		return nil, fmt.Errorf("url %q: 'https' is the only allowed URL scheme%s", text, form)
	case u.Hostname() == "":
		return nil, fmt.Errorf("url %q: host must be specified%s", text, form)
	case u.Fragment != "":
		return nil, fmt.Errorf("url %q: fragments are not permitted in the URL", text)
	case u.RawQuery != "":
		return nil, fmt.Errorf("url %q: query parameters are not permitted in the URL", text)
	}
	u.Path = cmp.Or(u.Path, "/")
	return u, nil
}

// bundle is the CA bundle, nil if the system's roots are meant.
func (c Config) bundle() []byte {
	if len(bytes.TrimSpace(c.CABundle)) == 0 {
		return nil
	}
	return c.CABundle
}

// roots is nil for the roots of the system.
func (c Config) roots() (*x509.CertPool, error) {
	pem := c.bundle()
	if pem == nil {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("unable to load root certificates: the caBundle holds no certificate in PEM")
	}
	return pool, nil
}
