package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/even-keel/evenkeel/client"
)

// ErrOptions says that a server cannot be as its options have it.
var ErrOptions = errors.New("wrong webhook options")

var errNotListening = errors.New("not listening")

// Options say how webhooks are served and registered. With a Name alone they are right
// for a program on a developer's machine.
type Options struct {
	// Name is that of the webhook configurations, and of who manages their fields. It is
	// needed unless Unregistered is set.
	Name string
	// Listen is the address of the server: ":9443" with a Service, and otherwise a free
	// port of the loopback.
	Listen string
	// Service is how API servers in a cluster reach the server, by a service's port: 443.
	// Without one, URL is: https:// and the address that is listened on.
	Service     client.Key
	ServicePort int32
	URL         string
	// CertFile and KeyFile are read again when they have changed. CAFile has the CAs that
	// API servers are to trust, if not those of their system.
	CertFile, KeyFile, CAFile string
	// Secret is where certificates that the server makes are kept. Replicas need one; the
	// default is to keep them in memory.
	Secret client.Key
	// Unregistered leaves configurations and custom resource definitions alone.
	Unregistered bool
	// MaxReview bounds an admission review: 8 MiB, as there may be two objects in one.
	// MaxConversion bounds a conversion review, which may have all objects of a list:
	// 64 MiB.
	MaxReview, MaxConversion int64
	// Grace is how long requests may take to end when the server does: 10 s.
	Grace time.Duration
	// Logger hears of what happens; the default is [slog.Default].
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Service.Name != "" {
		o.Listen = cmp.Or(o.Listen, ":9443")
	}
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:0")
	o.ServicePort = cmp.Or(o.ServicePort, 443)
	o.MaxReview = cmp.Or(o.MaxReview, 8<<20)
	o.MaxConversion = cmp.Or(o.MaxConversion, 64<<20)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// Server serves webhooks. Make one with [New].
type Server struct {
	opts       Options
	conn       *client.Conn
	hooks      []Hook // of admission
	converters map[schema.GroupKind]*converter
	handler    *http.ServeMux
	figures    *figures
	err        error // of what New was given

	mu    sync.Mutex
	addr  net.Addr
	ready error
}

// New returns a server of hooks, which it registers at the source's API server. It
// sends nothing. What is wrong with a hook is an error of [Server.Run].
func New(source client.Source, o Options, hooks ...Hook) *Server {
	s := &Server{
		opts: o.withDefaults(), conn: source.Conn(), converters: map[schema.GroupKind]*converter{},
		handler: http.NewServeMux(), figures: newFigures(), ready: errNotListening,
	}
	if o.Name == "" && !o.Unregistered {
		s.err = fmt.Errorf("%w: there is no name to register under", ErrOptions)
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		s.err = errors.Join(s.err, fmt.Errorf("%w: a certificate needs a key, and a key a certificate", ErrOptions))
	}
	for _, h := range hooks {
		s.err = errors.Join(s.err, s.add(h))
	}
	if len(s.converters) > 0 {
		s.handle("/convert", s.opts.MaxConversion, func(_ context.Context, body []byte) (any, error) {
			return answerConversion(s.converters, body)
		})
	}
	return s
}

func (s *Server) add(h Hook) error {
	if h.convert != nil {
		c, err := h.convert(s.conn)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrOptions, err)
		}
		if s.converters[c.hub.GroupKind()] != nil {
			return fmt.Errorf("%w: two conversions of %v", ErrOptions, c.hub.GroupKind())
		}
		s.converters[c.hub.GroupKind()] = c
		return nil
	}
	var err error
	if h.gvk, err = h.kindOf(s.conn, h.kind); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if slices.ContainsFunc(s.hooks, func(o Hook) bool { return o.path() == h.path() }) {
		return fmt.Errorf("%w: two webhooks that %s %v", ErrOptions, h.verb, h.gvk)
	}
	s.hooks = append(s.hooks, h)
	s.handle(h.path(), s.opts.MaxReview, h.answer)
	return nil
}

// ServeHTTP answers reviews, for programs that have a server of their own.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Ready is nil once API servers can call the webhooks: the server listens, and is
// registered.
func (s *Server) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// Addr is what the server listens on, or nil.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

func (s *Server) set(addr net.Addr, ready error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr, s.ready = addr, ready
}

// Host is what [Server.AddTo] needs of a manager.
type Host interface {
	GoEverywhere(name string, run func(context.Context) error)
	CheckReady(name string, ask func() error)
	Metrics() *prometheus.Registry
}

// AddTo has a manager run the server, whoever leads, with its metrics and readiness.
func (s *Server) AddTo(m Host) {
	m.GoEverywhere("webhooks", s.Run)
	m.CheckReady("webhooks", s.Ready)
	m.Metrics().MustRegister(s.figures.total, s.figures.latency, s.figures.running, s.figures.panics)
}

// Run serves until ctx ends, and lets requests end that are being answered. Those that
// take longer than [Options].Grace are cut off.
func (s *Server) Run(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	l, err := net.Listen("tcp", s.opts.Listen)
	if err != nil {
		return fmt.Errorf("listen for webhooks: %w", err)
	}
	host, at, err := s.reached(l.Addr())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	var certs certificates = &files{cert: s.opts.CertFile, key: s.opts.KeyFile, ca: s.opts.CAFile, log: s.opts.Logger}
	if s.opts.CertFile == "" {
		certs = &selfMade{host: host, secret: s.opts.Secret, secrets: client.Of[*corev1.Secret](s.conn)}
	}
	s.opts.Logger.Info("serving webhooks", "address", l.Addr().String())
	s.set(l.Addr(), errors.New("not registered"))
	defer s.set(nil, errNotListening)
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return s.serve(ctx, l, certs) })
	work.Go(func() error { return s.keep(ctx, certs, at) })
	return work.Wait()
}

// reached is the name under which API servers reach the server, and the URL if it is
// not by a service.
func (s *Server) reached(addr net.Addr) (host, at string, err error) {
	if s.opts.Service.Name != "" {
		return s.opts.Service.Name + "." + s.opts.Service.Namespace + ".svc", "", nil
	}
	at = cmp.Or(s.opts.URL, "https://"+addr.String())
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "https" {
		return "", "", fmt.Errorf("%w: %q is no URL of a webhook", ErrOptions, at)
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() && !s.opts.Unregistered {
		return "", "", fmt.Errorf("%w: on %s, a Service or a URL is needed", ErrOptions, addr)
	}
	return u.Hostname(), strings.TrimSuffix(at, "/"), nil
}

// serve answers on a listener until ctx ends.
func (s *Server) serve(ctx context.Context, l net.Listener, certs certificates) error {
	server := &http.Server{
		Handler: s.handler, TLSConfig: &tls.Config{GetCertificate: certs.get, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: maxTimeout, WriteTimeout: 2 * maxTimeout, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(l, "", "") }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve webhooks: %w", err)
	case <-ctx.Done():
	}
	s.set(nil, errNotListening)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Grace)
	defer cancel()
	if err := server.Shutdown(late); err != nil {
		_ = server.Close()
		s.opts.Logger.Warn("webhook requests did not end in time", "grace", s.opts.Grace)
	}
	<-ended
	return nil
}
