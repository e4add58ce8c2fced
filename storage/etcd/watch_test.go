package etcd

import (
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/even-keel/evenkeel/storage"
)

func TestARevisionSplitByFragmentsComesWhole(t *testing.T) {
	store := startMember(t, 4, func(s *session) error {
		s.sendEvents(true, put("a", 5), put("b", 6))
		s.sendEvents(true, put("c", 6))
		s.sendEvents(true, put("d", 6), put("e", 7))
		s.sendEvents(false, put("f", 7), put("g", 8))
		return s.hold()
	})
	w := store.Watch("", 4)
	defer w.Close()
	expect(t, w, told{"a", 5}, told{"bcd", 6}, told{"efg", 8})
}

func TestAStreamLostBetweenFragmentsRepeatsNothing(t *testing.T) {
	store := startMember(t, 4, func(s *session) error {
		switch s.number {
		case 1:
			s.sendEvents(true, put("a", 5), put("b", 6))
			return rpctypes.ErrGRPCNoLeader
		default:
			if s.create.StartRevision != 6 {
				t.Errorf("the watch goes on at %d, want 6", s.create.StartRevision)
			}
			s.sendEvents(false, put("b", 6), put("c", 6))
			return s.hold()
		}
	})
	w := store.Watch("", 4)
	defer w.Close()
	expect(t, w, told{"a", 5}, told{"bc", 6})
}

func TestProgressOfAMemberThatLagsDoesNotCount(t *testing.T) {
	store := startMember(t, 10, func(s *session) error {
		for _, revision := range []int64{7, 8, 9, 10, 11} {
			if !s.awaitProgressRequest() {
				return nil
			}
			s.sendProgress(revision)
		}
		return s.hold()
	})
	w := store.Watch("", 6)
	defer w.Close()
	w.RequestProgress()
	expect(t, w, told{"", 10})
}

func TestEventsUpToTheHeadAreProgressToo(t *testing.T) {
	store := startMember(t, 7, func(s *session) error {
		s.sendEvents(false, put("a", 7))
		s.sendEvents(false, put("b", 8))
		return s.hold()
	})
	w := store.Watch("", 6)
	defer w.Close()
	w.RequestProgress()
	expect(t, w, told{"a", 7}, told{"b", 8})
}

func TestProgressIsAskedForUntilTheMemberAnswers(t *testing.T) {
	store := startMember(t, 10, func(s *session) error {
		for range 3 { // a member that has events left to send does not answer
			if !s.awaitProgressRequest() {
				return nil
			}
		}
		s.sendProgress(10)
		return s.hold()
	})
	w := store.Watch("", 6)
	defer w.Close()
	w.RequestProgress()
	expect(t, w, told{"", 10})
}

// Etcd may send progress past events that it keeps until the watch is announced.
func TestProgressBeforeTheWatchIsThereDoesNotCount(t *testing.T) {
	m := &member{
		early: func(s *session) { s.sendProgress(10) },
		script: func(s *session) error {
			s.sendEvents(false, put("a", 8))
			if s.awaitProgressRequest() {
				s.sendProgress(10)
			}
			return s.hold()
		},
	}
	m.head.Store(10)
	w := m.serve(t).Watch("", 6)
	defer w.Close()
	w.RequestProgress()
	expect(t, w, told{"a", 8}, told{"", 10})
}

func TestProgressThatWasNotAskedForIsKeptForTheCursor(t *testing.T) {
	store := startMember(t, 10, func(s *session) error {
		switch s.number {
		case 1:
			s.sendProgress(9)
			return rpctypes.ErrGRPCStopped
		default:
			if s.create.StartRevision != 10 {
				t.Errorf("the watch goes on at %d, want 10", s.create.StartRevision)
			}
			s.sendEvents(false, put("a", 11))
			return s.hold()
		}
	})
	w := store.Watch("", 6)
	defer w.Close()
	expect(t, w, told{"a", 11})
}

func TestTheHeaderOfEventsIsNotProgress(t *testing.T) {
	store := startMember(t, 10, func(s *session) error {
		head := &pb.ResponseHeader{Revision: 10} // of a member with more to send
		s.send(&pb.WatchResponse{Header: head, Events: []*mvccpb.Event{put("a", 7)}})
		s.send(&pb.WatchResponse{Header: head, Events: []*mvccpb.Event{put("b", 8)}})
		return s.hold()
	})
	w := store.Watch("", 6)
	defer w.Close()
	expect(t, w, told{"a", 7}, told{"b", 8})
}

func TestAStreamThatEndsIsReplaced(t *testing.T) {
	for name, end := range map[string]error{
		"without an error":        nil,
		"as there is no leader":   rpctypes.ErrGRPCNoLeader,
		"as the member stops":     rpctypes.ErrGRPCStopped,
		"as the member cancels":   rpctypes.ErrGRPCWatchCanceled,
		"as the member is behind": rpctypes.ErrGRPCInvalidAuthToken,
		"by a broken connection":  status.Error(codes.Internal, "stream terminated by RST_STREAM"),
	} {
		t.Run(name, func(t *testing.T) {
			store := startMember(t, 4, func(s *session) error {
				if s.create.StartRevision != s.number+4 {
					t.Errorf("stream %d starts at %d", s.number, s.create.StartRevision)
				}
				s.sendEvents(false, put("a", s.create.StartRevision))
				return end
			})
			w := store.Watch("", 4)
			defer w.Close()
			expect(t, w, told{"a", 5}, told{"a", 6}, told{"a", 7})
		})
	}
}

func TestAWatchThatCannotGoOnSaysWhy(t *testing.T) {
	gone := put("a", 7)
	gone.Kv.CreateRevision = 3
	deleted := put("a", 7)
	deleted.Type = mvccpb.Event_DELETE
	for name, test := range map[string]struct {
		answer *pb.WatchResponse
		end    error
		want   error
	}{
		"compacted":                         {&pb.WatchResponse{CompactRevision: 9, Canceled: true}, nil, storage.ErrCompacted},
		"what was replaced is compacted":    {&pb.WatchResponse{Events: []*mvccpb.Event{gone}}, nil, storage.ErrCompacted},
		"what was deleted is compacted":     {&pb.WatchResponse{Events: []*mvccpb.Event{deleted}}, nil, storage.ErrCompacted},
		"the user may not read the prefix":  {&pb.WatchResponse{Canceled: true, CancelReason: rpctypes.ErrGRPCPermissionDenied.Error()}, nil, ErrDenied},
		"the password does not hold longer": {nil, rpctypes.ErrGRPCAuthFailed, ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			store := startMember(t, 9, func(s *session) error {
				if test.answer != nil {
					s.send(test.answer)
					return s.hold()
				}
				return test.end
			})
			w := store.Watch("", 6)
			defer w.Close()
			for range 2 {
				if _, err := w.Next(t.Context()); !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
			}
		})
	}
}
