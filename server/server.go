// Package server puts the API server together: store, hub, API, identities,
// health, metrics and the listener.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"

	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/gather"
	"github.com/even-keel/evenkeel/server/h2"
	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/rest"
	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

// Config is what a [Server] needs.
type Config struct {
	// Store holds everything. Who opened it closes it, after Run has returned.
	Store storage.Store
	// Listener takes connections; Run closes it.
	Listener net.Listener
	// TLS holds the serving certificate and asks for client certificates.
	TLS *tls.Config
	// Authenticator says who makes a request, Authorizer what they may do.
	Authenticator auth.Authenticator
	Authorizer    auth.Authorizer
	// Address is where clients are told to reach the server; "" is the listener's.
	Address string
	// Tokens makes tokens of service accounts, ReviewToken knows all tokens.
	Tokens      *auth.TokenIssuer
	ReviewToken rest.TokenReviewer
	// Documents are served as they are, by their path, to everybody.
	Documents map[string][]byte
	// Bootstrap are objects that are made if they do not exist, in no order.
	Bootstrap []runtime.Object
	// Version is what /version answers.
	Version version.Info
	// Services says which addresses and ports services get.
	Services rest.ServiceRange
	// Nodes finds the agents of nodes, for the logs of pods and for connections to
	// them; nil knows none.
	Nodes rest.Nodes
	// Limits bound what clients can take; zero fields mean the defaults.
	Limits Limits
	// EventLife is how long events are kept; zero is an hour.
	EventLife time.Duration
	// CompactEvery is how often the store is to forget what is older than that;
	// zero is never, for stores that forget by themselves.
	CompactEvery time.Duration
	// Now is the clock; nil is the system's.
	Now    func() time.Time
	Logger *slog.Logger
}

// Server serves the Kubernetes API. Make one with [New].
type Server struct {
	config  Config
	log     *slog.Logger
	hub     *watch.Hub
	api     *rest.API
	ready   atomic.Bool
	meters  *meters
	serving chan struct{}
	// streams are the answers that go on: those that took over their connection are
	// not known to the http.Server.
	streams sync.WaitGroup
}

// New returns a server. It does no I/O.
func New(c Config) *Server {
	s := &Server{config: c, log: c.Logger, hub: watch.New(c.Store), meters: newMeters(), serving: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.config.Limits = c.Limits.withDefaults()
	return s
}

// Ready is closed when the server answers requests.
func (s *Server) Ready() <-chan struct{} { return s.serving }

// stopWithin is how long requests may take to end when the server stops.
const stopWithin = 20 * time.Second

// Run serves until ctx ends. Then watches end, requests in flight are finished,
// and it returns once nothing runs any more. Stopping is no error.
func (s *Server) Run(ctx context.Context) error {
	defer func() { _ = s.config.Listener.Close() }()
	if err := s.hub.Load(ctx); err != nil {
		return err
	}
	s.api = rest.New(rest.Config{
		Store: s.config.Store, Hub: s.hub, Kinds: kinds.All(), Scheme: kinds.Scheme(), Logger: s.log, Now: s.config.Now,
		Address: cmp.Or(s.config.Address, s.config.Listener.Addr().String()), Tokens: s.config.Tokens,
		Authorizer: s.config.Authorizer, ReviewToken: s.config.ReviewToken,
		Services: s.config.Services, Nodes: s.config.Nodes,
	})
	defer s.api.Close()
	if err := s.api.LoadDefinitions(); err != nil {
		s.log.Error("some custom resources are not served", "error", err)
	}
	if s.config.Tokens != nil {
		s.config.Tokens.Require(s.api.TokenHolds)
	}
	following, stopFollowing := context.WithCancel(context.WithoutCancel(ctx))
	followed := make(chan error, 1)
	go func() { followed <- s.hub.Run(following) }()
	err := s.serve(ctx, followed)
	stopFollowing()
	return errors.Join(err, drain(followed))
}

// drain waits for the hub; what it ended with has been told if it came first.
func drain(followed <-chan error) error {
	err, ok := <-followed
	if !ok {
		return nil
	}
	return err
}

// requestsAtOnce is how many requests and watches a connection of HTTP/2 carries.
const requestsAtOnce = 1000

// serve answers requests until ctx ends or the hub does.
func (s *Server) serve(ctx context.Context, followed chan error) error {
	if err := s.bootstrap(ctx); err != nil {
		return err
	}
	watches, endWatches := context.WithCancel(context.WithoutCancel(ctx))
	defer endWatches()
	h := &http.Server{
		Handler:           s.handler(watches),
		TLSConfig:         s.config.TLS,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    1 << 20,
		ConnContext:       gather.Context,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	h2.Configure(h, requestsAtOnce)
	served := make(chan error, 1)
	go func() { served <- s.listen(h) }()
	var chores sync.WaitGroup
	defer chores.Wait()
	chores.Go(func() { s.expireEvents(watches) })
	chores.Go(func() { s.followDefinitions(watches) })
	if s.config.CompactEvery > 0 {
		chores.Go(func() { s.compact(watches) })
	}
	s.ready.Store(true)
	close(s.serving)

	var failure error
	select {
	case <-ctx.Done():
	case failure = <-served:
		served <- failure
	case failure = <-followed:
		close(followed)
		failure = fmt.Errorf("the server cannot go on: %w", failure)
	}
	s.ready.Store(false)
	endWatches()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := h.Shutdown(stopping); err != nil {
		s.log.Warn("some requests did not end in time", "error", err)
		_ = h.Close()
	}
	s.streams.Wait()
	if err := <-served; failure == nil && !errors.Is(err, http.ErrServerClosed) {
		failure = err
	}
	return failure
}

// followDefinitions serves what custom resource definitions define until ctx
// ends.
func (s *Server) followDefinitions(ctx context.Context) {
	if err := s.api.RunDefinitions(ctx); err != nil {
		s.log.Error("custom resource definitions are no longer followed", "error", err)
	}
}

// expireEvery is how often old events are looked for.
const expireEvery = time.Minute

// expireEvents deletes old events until ctx ends.
func (s *Server) expireEvents(ctx context.Context) {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.api.ExpireEvents(ctx, cmp.Or(s.config.EventLife, time.Hour)); err != nil {
				s.log.Warn("old events were not deleted", "error", err)
			}
		}
	}
}

// compact has the store forget, each time, what was old the time before. Servers
// that share a store may each do so.
func (s *Server) compact(ctx context.Context) {
	tick := time.NewTicker(s.config.CompactEvery)
	defer tick.Stop()
	old := s.hub.Through()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.hub.Compact(ctx, old); err != nil && !errors.Is(err, storage.ErrCompacted) {
				s.log.Warn("old revisions were not compacted", "revision", old, "error", err)
			}
			old = s.hub.Through()
		}
	}
}

// Compact forgets all history up to now.
func (s *Server) Compact(ctx context.Context) error { return s.hub.Compact(ctx, s.hub.Through()) }

func (s *Server) listen(h *http.Server) error {
	l := gather.Listener(s.config.Listener)
	if s.config.TLS == nil {
		return h.Serve(l)
	}
	return h.ServeTLS(l, "", "")
}

// bootstrapAtOnce is how many of the first objects are made at the same time:
// they share the store's syncs.
const bootstrapAtOnce = 64

// bootstrap makes the objects that are there from the start.
func (s *Server) bootstrap(ctx context.Context) error {
	g, making := errgroup.WithContext(ctx)
	g.SetLimit(bootstrapAtOnce)
	for _, obj := range s.config.Bootstrap {
		g.Go(func() error { return s.api.Ensure(making, obj) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("make the first objects: %w", err)
	}
	return s.api.RepairServices(ctx)
}
