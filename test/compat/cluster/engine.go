package cluster

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
	"github.com/even-keel/evenkeel/storage/etcd"
	"github.com/even-keel/evenkeel/test/storage/etcdtest"
)

// Engine is one of the places where a server keeps its objects.
type Engine struct {
	Name string
	// Lasting says that the objects outlive the server.
	Lasting bool
	// place prepares a place of its own and returns how to open it, which may be
	// done again after it was closed.
	place func(t testing.TB) func() (storage.Store, error)
}

// The engines.
var (
	Memory = Engine{Name: "memory", place: func(testing.TB) func() (storage.Store, error) {
		return func() (storage.Store, error) { return embedded.Open(embedded.Options{Memory: true}) }
	}}
	Disk = Engine{Name: "disk", Lasting: true, place: func(t testing.TB) func() (storage.Store, error) {
		dir := t.TempDir()
		return func() (storage.Store, error) { return embedded.Open(embedded.Options{Dir: dir}) }
	}}
	Etcd = Engine{Name: "etcd", Lasting: true, place: func(t testing.TB) func() (storage.Store, error) {
		return NewEtcd(t, 1).open(t)
	}}
)

// Engines are all of them.
var Engines = []Engine{Memory, Disk, Etcd}

// Each runs a test on a fresh server of each engine, in parallel with others.
func Each(t *testing.T, test func(t *testing.T, s *Server)) {
	t.Parallel()
	for _, e := range Engines {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			test(t, e.Start(t))
		})
	}
}

// EachLasting runs a test for each engine whose objects outlive the server, in
// parallel with others.
func EachLasting(t *testing.T, test func(t *testing.T, e Engine)) {
	t.Parallel()
	for _, e := range Engines {
		if e.Lasting {
			t.Run(e.Name, func(t *testing.T) {
				t.Parallel()
				test(t, e)
			})
		}
	}
}

// Start starts a server with a place of its own.
func (e Engine) Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	return start(t, e.place(t), options)
}

// SharedEtcd is an etcd cluster for servers that share their objects.
type SharedEtcd struct {
	endpoints []string
	prefix    string
	options   []Option
}

var prefixes atomic.Int64

// NewEtcd starts a cluster of some members.
func NewEtcd(t testing.TB, members int) *SharedEtcd {
	t.Helper()
	return &SharedEtcd{
		endpoints: etcdtest.Start(t, members).Endpoints(),
		prefix:    fmt.Sprintf("/compat-%d/", prefixes.Add(1)),
		options:   []Option{WithCredentials(newCredentials(t))},
	}
}

// Start starts a server on the cluster; all share one CA.
func (s *SharedEtcd) Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	return start(t, s.open(t), append(s.options[:1:1], options...))
}

func (s *SharedEtcd) open(t testing.TB) func() (storage.Store, error) {
	return func() (storage.Store, error) {
		return etcd.Open(t.Context(), etcd.Options{Endpoints: s.endpoints, Prefix: s.prefix})
	}
}
