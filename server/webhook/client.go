package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	// DefaultTimeout bounds a call that names no timeout.
	DefaultTimeout = 30 * time.Second
	// DefaultMaxAnswer bounds the answer to a call that names no bound.
	DefaultMaxAnswer = 16 << 20
	// DefaultUserAgent is how the server calls itself.
	DefaultUserAgent = "evenkeel-admission"
	// DefaultMaxTransports is enough for every webhook of most clusters.
	DefaultMaxTransports = 200
)

// Options of a [Client]; the zero value has the defaults.
type Options struct {
	// Resolver finds services. Without it only webhooks with a URL are called.
	Resolver Resolver
	// UserAgent is [DefaultUserAgent] if it is empty.
	UserAgent string
	// MaxTransports bounds the webhooks that connections are kept to. The one
	// that was not called for longest makes room: its connections are closed
	// when its last call ends, and its next call connects anew.
	MaxTransports int
}

// Client calls webhooks, and keeps connections to them. Webhooks with the same
// host and CA bundle share theirs. It may be used by many goroutines.
type Client struct {
	resolver  Resolver
	userAgent string
	pool      *pool
}

// NewClient returns a client; [Client.Close] ends it.
func NewClient(opts Options) *Client {
	return &Client{
		resolver:  opts.Resolver,
		userAgent: cmp.Or(opts.UserAgent, DefaultUserAgent),
		pool:      newPool(cmp.Or(opts.MaxTransports, DefaultMaxTransports)),
	}
}

// Close closes all connections. Calls under way and later ones fail with [ErrClosed].
func (c *Client) Close() { c.pool.close() }

// Hook is one webhook, as its configuration was when [Client.Hook] was called.
type Hook struct {
	client  *Client
	at      url.URL
	service *Service // nil if the URL says it all
	key     poolKey
	roots   *x509.CertPool
}

// Hook checks a configuration; what cannot be called is [ErrConfig]. It does no I/O.
func (c *Client) Hook(cfg Config) (*Hook, error) {
	at, err := cfg.location()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	roots, err := cfg.roots()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, at, err)
	}
	h := &Hook{client: c, at: *at, roots: roots}
	h.key = poolKey{host: at.Host, roots: string(cfg.bundle())}
	if cfg.Service != nil {
		service := *cfg.Service
		h.service, h.key.serverName = &service, service.host()
		if c.resolver == nil {
			return nil, fmt.Errorf("%w: %s: services cannot be resolved", ErrConfig, at)
		}
	}
	return h, nil
}

// URL is what the webhook is called in errors. The host of a service is
// `<name>.<namespace>.svc`.
func (h *Hook) URL() string { return h.at.String() }

// Call is what a webhook is asked.
type Call struct {
	// Body is JSON.
	Body []byte
	// Timeout bounds the whole call, besides the context: from the search for
	// the service's address to the last byte of the answer. The webhook is told
	// it in its query, `?timeout=30s`. None means [DefaultTimeout].
	Timeout time.Duration
	// MaxAnswer bounds the answer, in bytes as they are uncompressed. None means
	// [DefaultMaxAnswer].
	MaxAnswer int64
}

// Post calls the webhook once and returns the body of a successful answer. No
// redirect is followed and nothing is retried. The error is a [url.Error] that
// names the webhook.
func (h *Hook) Post(ctx context.Context, call Call) ([]byte, error) {
	call.Timeout = cmp.Or(max(call.Timeout, 0), DefaultTimeout)
	call.MaxAnswer = cmp.Or(max(call.MaxAnswer, 0), DefaultMaxAnswer)
	target := h.at
	target.RawQuery = url.Values{"timeout": {call.Timeout.String()}}.Encode()
	answer, err := h.bounded(ctx, target, call)
	if err != nil {
		return nil, &url.Error{Op: "Post", URL: target.String(), Err: err}
	}
	return answer, nil
}

// bounded ends a call with its context, its timeout or the client, and says
// which it was.
func (h *Hook) bounded(ctx context.Context, target url.URL, call Call) ([]byte, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := h.client.pool.enter(&end); err != nil {
		return nil, err
	}
	defer h.client.pool.leave(&end)
	late := fmt.Errorf("no answer within %v: %w", call.Timeout, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, call.Timeout, late)
	defer cancel()

	answer, err := h.post(ctx, target, call)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return answer, err
}

func (h *Hook) post(ctx context.Context, target url.URL, call Call) ([]byte, error) {
	address, err := h.address(ctx)
	if err != nil {
		return nil, err
	}
	t, err := h.client.pool.acquire(h.key, h.roots)
	if err != nil {
		return nil, err
	}
	defer h.client.pool.release(t)

	target.Host = address
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(call.Body))
	if err != nil {
		return nil, err
	}
	req.Host = h.at.Host
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, */*")
	req.Header.Set("User-Agent", h.client.userAgent)
	resp, err := t.http.RoundTrip(req)
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(plain.RecordHeader[:]) == "HTTP/" {
		return nil, http.ErrSchemeMismatch
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return readAnswer(resp, call.MaxAnswer)
}

// address is the host and port to connect to. A resolver's error is not
// wrapped: it may be one of the API, and is not about the caller's object.
func (h *Hook) address(ctx context.Context) (string, error) {
	if h.service == nil {
		return h.at.Host, nil
	}
	address, err := h.client.resolver.Resolve(ctx, h.service.Namespace, h.service.Name, h.service.port())
	if err != nil {
		return "", fmt.Errorf("%w: %v", ErrResolve, err)
	}
	return address, nil
}
