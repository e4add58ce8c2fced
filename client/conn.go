package client

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Conn is the connection to one API server that clients of all kinds share: the
// transport with its credentials, and what is known of the server's resources.
// It is safe for concurrent use, starts no goroutine and needs no closing.
type Conn struct {
	http    *http.Client
	base    *url.URL
	agent   string
	manager string
	json    bool // protobuf is not wanted
	limiter flowcontrol.RateLimiter
	warn    rest.WarningHandlerWithContext
	scheme  *runtime.Scheme
	log     *slog.Logger
	retries int
	mapping mapping
	// observers hear of each request.
	observers []func(context.Context, Call)
}

// Option changes what [Connect] makes.
type Option func(*Conn)

// Scheme tells the kinds of Go types. Types of k8s.io/api need none.
func Scheme(s *runtime.Scheme) Option { return func(c *Conn) { c.scheme = s } }

// Logger takes the server's warnings, each once. The default is [slog.Default].
func Logger(l *slog.Logger) Option { return func(c *Conn) { c.log = l } }

// Retries bounds how often a request is repeated that the server asked to send
// again later. The default is 10; 0 is never.
func Retries(n int) Option { return func(c *Conn) { c.retries = n } }

// Manager names who writes, as managed fields tell it: for all writes that do not
// say otherwise by [FieldManager]. The default is the program's name.
func Manager(name string) Option { return func(c *Conn) { c.manager = name } }

const defaultRetries = 10

// Connect prepares a connection; it sends nothing. All that authenticates is
// taken from the configuration: certificates, tokens and their files, exec
// plugins, OIDC, impersonation.
//
// There is no limit of requests per second, unless the configuration has a QPS
// or a RateLimiter. With a ContentType of application/json, there is no protobuf.
func Connect(cfg *rest.Config, opts ...Option) (*Conn, error) {
	cfg = rest.CopyConfig(cfg)
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w", cfg.Host, err)
	}
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w", cfg.Host, err)
	}
	c := &Conn{
		http: h, base: base, agent: cfg.UserAgent, log: slog.Default(), retries: defaultRetries,
		json: cfg.ContentType == mediaJSON, limiter: limiterOf(cfg),
	}
	c.manager, _, _ = strings.Cut(cfg.UserAgent, "/")
	c.mapping = mapping{conn: c, versions: map[schema.GroupVersion]*version{}}
	for _, o := range opts {
		o(c)
	}
	c.warn = warningsOf(cfg, c.log)
	return c, nil
}

func limiterOf(cfg *rest.Config) flowcontrol.RateLimiter {
	switch {
	case cfg.RateLimiter != nil:
		return cfg.RateLimiter
	case cfg.QPS > 0:
		return flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, max(cfg.Burst, 1))
	}
	return nil
}

// Conn returns c itself: a connection is a [Source].
func (c *Conn) Conn() *Conn { return c }

// Get reads a path that is no resource, such as /version or /readyz.
func (c *Conn) Get(ctx context.Context, path string) ([]byte, error) {
	body, err := c.read(ctx, &call{method: http.MethodGet, path: path, accept: mediaJSON + ", */*"})
	if err != nil {
		return nil, err
	}
	defer body.free()
	return append([]byte(nil), body.bytes...), nil
}
