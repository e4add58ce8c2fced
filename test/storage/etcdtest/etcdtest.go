// Package etcdtest starts etcd clusters in the test's own process, on loopback
// addresses and without waiting for disks.
package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
)

// startTimeout is when a member that does not start is given up.
const startTimeout = time.Minute

// Option changes the configuration of each member.
type Option func(*embed.Config)

// Cluster is a running cluster. It is stopped when the test ends.
type Cluster struct {
	t       testing.TB
	options []Option
	members []*Member
}

// Start starts a cluster that takes requests of up to 16 MiB.
func Start(t testing.TB, members int, options ...Option) *Cluster {
	t.Helper()
	c := &Cluster{t: t, options: options}
	for range members {
		c.members = append(c.members, newMember(t, len(c.members)))
	}
	t.Cleanup(c.stop)
	c.each(func(m *Member) error { return m.start(c.configure(m)) })
	return c
}

// Endpoints returns the client URLs of all members, running or not.
func (c *Cluster) Endpoints() []string {
	var out []string
	for _, m := range c.members {
		out = append(out, m.Endpoint())
	}
	return out
}

// Member returns a member by number.
func (c *Cluster) Member(i int) *Member { return c.members[i] }

// Leader returns the number of the member that leads, once one does.
func (c *Cluster) Leader() int {
	c.t.Helper()
	deadline := time.Now().Add(startTimeout)
	for poll := time.NewTicker(10 * time.Millisecond); time.Now().Before(deadline); <-poll.C {
		for i, m := range c.members {
			if e := m.running(); e != nil && e.Server.MemberID() == e.Server.Leader() {
				return i
			}
		}
	}
	c.t.Fatal("the cluster has no leader")
	return -1
}

// Kill ends a member at once: its connections break, and no leadership is
// handed over.
func (c *Cluster) Kill(i int) { c.members[i].kill() }

// Restart starts a killed member where it was, and returns once it serves.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	m := c.members[i]
	if err := m.start(c.configure(m)); err != nil {
		c.t.Fatal(err)
	}
}

// Isolate cuts a running member off from the others; clients still reach it.
func (c *Cluster) Isolate(i int) {
	c.links(i, func(from, to *etcdserver.EtcdServer) { from.CutPeer(to.MemberID()) })
}

// Rejoin undoes Isolate.
func (c *Cluster) Rejoin(i int) {
	c.links(i, func(from, to *etcdserver.EtcdServer) { from.MendPeer(to.MemberID()) })
}

// links calls f for both directions between a member and each of the others.
func (c *Cluster) links(i int, f func(from, to *etcdserver.EtcdServer)) {
	one := c.members[i].running()
	for n, m := range c.members {
		if other := m.running(); n != i && one != nil && other != nil {
			f(one.Server, other.Server)
			f(other.Server, one.Server)
		}
	}
}

func (c *Cluster) stop() {
	c.each(func(m *Member) error { m.kill(); return nil })
}

func (c *Cluster) each(f func(*Member) error) {
	c.t.Helper()
	errs := make([]error, len(c.members))
	var all sync.WaitGroup
	for i, m := range c.members {
		all.Go(func() { errs[i] = f(m) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *Cluster) configure(m *Member) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = m.name, m.dir
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{m.peer}, []url.URL{m.peer}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{m.client}, []url.URL{m.client}
	var initial []string
	for _, other := range c.members {
		initial = append(initial, other.name+"="+other.peer.String())
	}
	cfg.InitialCluster = strings.Join(initial, ",")
	cfg.InitialClusterToken = c.t.Name()
	cfg.UnsafeNoFsync = true
	cfg.MaxRequestBytes = 16 << 20
	cfg.TickMs, cfg.ElectionMs = 20, 400
	if len(c.members) == 1 {
		cfg.TickMs, cfg.ElectionMs = 10, 50
	}
	cfg.BcryptCost = 4
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger())
	for _, option := range c.options {
		option(cfg)
	}
	return cfg
}

// logger tells only why etcd gives up.
func logger() *zap.Logger {
	cfg := zap.NewProductionConfig()
	cfg.Level = zap.NewAtomicLevelAt(zapcore.DPanicLevel)
	lg, err := cfg.Build()
	if err != nil {
		panic(err)
	}
	return lg
}

// Member is one server of a cluster.
type Member struct {
	name, dir    string
	peer, client url.URL

	mu   sync.Mutex
	etcd *embed.Etcd
	grpc []*grpc.Server
}

func newMember(t testing.TB, number int) *Member {
	t.Helper()
	name := fmt.Sprintf("m%d", number)
	return &Member{
		name:   name,
		dir:    filepath.Join(t.TempDir(), name),
		peer:   url.URL{Scheme: "http", Host: freeAddress(t)},
		client: url.URL{Scheme: "http", Host: freeAddress(t)},
	}
}

// freeAddress returns an address below the range that outgoing connections
// take theirs from, so that a member finds it free when it comes back.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no free port on 127.0.0.1")
	return ""
}

// Endpoint is the member's client URL.
func (m *Member) Endpoint() string { return m.client.String() }

func (m *Member) running() *embed.Etcd {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.etcd
}

func (m *Member) start(cfg *embed.Config) error {
	cfg.ServiceRegister = func(s *grpc.Server) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.grpc = append(m.grpc, s)
	}
	m.client.Scheme = cfg.ListenClientUrls[0].Scheme
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("start etcd member %s: %w", m.name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	select {
	case <-e.Server.ReadyNotify():
	case err = <-e.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		e.Close()
		return fmt.Errorf("etcd member %s does not serve: %w", m.name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.etcd = e
	return nil
}

func (m *Member) kill() {
	m.mu.Lock()
	e, servers := m.etcd, m.grpc
	m.etcd, m.grpc = nil, nil
	m.mu.Unlock()
	if e == nil {
		return
	}
	for _, s := range servers {
		s.Stop()
	}
	e.Server.HardStop()
	e.Close()
}
