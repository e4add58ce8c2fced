package etcd

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/even-keel/evenkeel/storage"
)

// member answers like a member of a cluster that is not easily had: one that
// lags behind, splits responses, or breaks off at a certain point. What
// ordinary ones do is tested in test/storage against real ones.
type member struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	t       *testing.T
	head    atomic.Int64 // of the cluster, not of the member
	streams atomic.Int64
	script  func(*session) error
	// early, if set, is run before the watch is said to be created.
	early func(*session)
	// ranges, if set, answers reads of more than one key.
	ranges func(*pb.RangeRequest) (*pb.RangeResponse, error)
}

// session is one watch stream, whose watch has been created.
type session struct {
	pb.Watch_WatchServer
	t      *testing.T
	number int64 // of the stream, from 1
	create *pb.WatchCreateRequest
}

// startMember serves a script and opens a store on it.
func startMember(t *testing.T, head int64, script func(*session) error) *Store {
	t.Helper()
	m := &member{script: script}
	m.head.Store(head)
	return m.serve(t)
}

func (m *member) serve(t *testing.T) *Store {
	t.Helper()
	m.t = t
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterKVServer(server, m)
	pb.RegisterWatchServer(server, m)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	store, err := Open(t.Context(), Options{Endpoints: []string{"http://" + listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func (m *member) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if m.ranges != nil && len(r.RangeEnd) > 0 {
		return m.ranges(r)
	}
	if r.Revision > m.head.Load() {
		return nil, rpctypes.ErrGRPCFutureRev
	}
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: m.head.Load()}}, nil
}

func (m *member) Watch(stream pb.Watch_WatchServer) error {
	request, err := stream.Recv()
	if err != nil {
		return err
	}
	s := &session{Watch_WatchServer: stream, t: m.t, number: m.streams.Add(1), create: request.GetCreateRequest()}
	if m.early != nil {
		m.early(s)
	}
	s.send(&pb.WatchResponse{Created: true})
	return m.script(s)
}

// send answers with revision 1 in the header, unless the response has one.
func (s *session) send(resp *pb.WatchResponse) {
	if resp.Header == nil {
		resp.Header = &pb.ResponseHeader{Revision: 1}
	}
	if err := s.Send(resp); err != nil {
		s.t.Errorf("send: %v", err)
	}
}

func (s *session) sendEvents(fragment bool, events ...*mvccpb.Event) {
	s.send(&pb.WatchResponse{Events: events, Fragment: fragment})
}

func (s *session) sendProgress(revision int64) {
	s.send(&pb.WatchResponse{WatchId: -1, Header: &pb.ResponseHeader{Revision: revision}})
}

// awaitProgressRequest reports false if the client has gone.
func (s *session) awaitProgressRequest() bool {
	request, err := s.Recv()
	if err != nil {
		return false
	}
	if request.GetProgressRequest() == nil {
		s.t.Errorf("got %v, want a request for progress", request)
	}
	return true
}

// hold keeps the stream open until the client leaves.
func (s *session) hold() error {
	<-s.Context().Done()
	return nil
}

// put is an event that creates a key.
func put(key string, revision int64) *mvccpb.Event {
	name := []byte(defaultPrefix + key)
	return &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: name, Value: []byte(key), CreateRevision: revision, ModRevision: revision}}
}

// told is what a batch says, for comparison.
type told struct {
	events  string // keys
	through storage.Revision
}

func tell(batch storage.Batch) told {
	out := told{through: batch.Through}
	for _, e := range batch.Events {
		out.events += string(e.Key)
	}
	return out
}

// expect fails unless Next tells these things, in turn.
func expect(t *testing.T, w storage.Watcher, want ...told) {
	t.Helper()
	for _, want := range want {
		batch, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := tell(batch); got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}
