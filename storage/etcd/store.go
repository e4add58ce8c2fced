package etcd

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/even-keel/evenkeel/storage"
)

// healthTimeout bounds how long Health waits for the cluster.
const healthTimeout = 2 * time.Second

// Store is a [storage.Store] on an etcd cluster. Make one with [Open].
type Store struct {
	client  *clientv3.Client
	watches pb.WatchClient
	prefix  string
	timeout time.Duration

	// running counts what Close has to wait for.
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

var (
	_ storage.Store         = (*Store)(nil)
	_ storage.HealthChecker = (*Store)(nil)
)

// Get implements [storage.Store].
func (s *Store) Get(ctx context.Context, key storage.Key) (storage.Entry, error) {
	resp, err := s.read(ctx, s.name(key))
	if err == nil && len(resp.Kvs) == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return storage.Entry{}, fmt.Errorf("get %q: %w", key, err)
	}
	return s.entry(resp.Kvs[0]), nil
}

// Head implements [storage.Store].
func (s *Store) Head(ctx context.Context) (storage.Revision, error) {
	resp, err := s.read(ctx, s.prefix, clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("read the head: %w", err)
	}
	return storage.Revision(resp.Header.Revision), nil
}

// Compact implements [storage.Store]. It forgets the states of the whole
// cluster, those of other stores and of anybody else who uses it included.
func (s *Store) Compact(ctx context.Context, at storage.Revision) error {
	err := s.call(ctx, func(ctx context.Context) error {
		_, err := s.client.Compact(ctx, signed(at))
		return err
	})
	if err != nil {
		return fmt.Errorf("compact at revision %d: %w", at, err)
	}
	return nil
}

// Health implements [storage.HealthChecker]: it proposes a write whose
// condition never holds, which needs a quorum and space but changes nothing.
func (s *Store) Health(ctx context.Context) error {
	never := clientv3.Compare(clientv3.ModRevision(s.prefix), "=", -1)
	err := s.callWithin(ctx, min(healthTimeout, s.timeout), func(ctx context.Context) error {
		_, err := s.client.Txn(ctx).If(never).Then(clientv3.OpPut(s.prefix, "")).Commit()
		return err
	})
	if err != nil {
		return fmt.Errorf("check the etcd cluster: %w", err)
	}
	return nil
}

// Close implements [storage.Store]. The cluster runs on.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		s.running.Wait()
		return nil
	}
	err := s.client.Close()
	s.running.Wait()
	if err != nil {
		return fmt.Errorf("close the etcd client: %w", err)
	}
	return nil
}

// read is a linearizable read of one key or, with options, of a range.
func (s *Store) read(ctx context.Context, key string, opts ...clientv3.OpOption) (resp *clientv3.GetResponse, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		resp, err = s.client.Get(ctx, key, opts...)
		return err
	})
	return resp, err
}

// call makes one request to the cluster and translates its error.
func (s *Store) call(ctx context.Context, request func(context.Context) error) error {
	return s.callWithin(ctx, s.timeout, request)
}

func (s *Store) callWithin(ctx context.Context, timeout time.Duration, request func(context.Context) error) error {
	if !s.enter() {
		return storage.ErrClosed
	}
	defer s.running.Done()
	err := within(ctx, timeout, request)
	if err != nil && s.isClosed() {
		return storage.ErrClosed
	}
	return err
}

// enter counts a call in, unless the store is closed. Who enters must call
// running.Done.
func (s *Store) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	return true
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// name returns the name that a key has in etcd.
func (s *Store) name(key storage.Key) string { return s.prefix + string(key) }

func (s *Store) entry(kv *mvccpb.KeyValue) storage.Entry {
	if kv == nil {
		return storage.Entry{}
	}
	return storage.Entry{
		Key:      storage.Key(kv.Key[len(s.prefix):]),
		Value:    kv.Value,
		Revision: storage.Revision(kv.ModRevision),
	}
}

// signed returns etcd's form of a revision; those that it cannot express are
// as far in the future as its greatest.
func signed(r storage.Revision) int64 { return int64(min(r, math.MaxInt64-1)) }
