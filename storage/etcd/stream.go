package etcd

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/even-keel/evenkeel/storage"
)

// streamOptions: a stream waits for a member that can be reached.
var streamOptions = []grpc.CallOption{
	grpc.WaitForReady(true),
	grpc.MaxCallRecvMsgSize(math.MaxInt32),
}

// stream is one watch on one member.
type stream struct {
	rpc    pb.Watch_WatchClient
	cancel context.CancelFunc
	// sending is held while a request is sent: two may not be sent at once.
	sending sync.Mutex
	// created says that the member has told that the watch is there. Until then
	// it may hold events back while it lets an answer about progress pass, so
	// that none is asked for, nor counts.
	created bool
}

// receive waits for a response, on a new stream if there is none.
func (w *watcher) receive(ctx context.Context) (*pb.WatchResponse, error) {
	st, err := w.attach(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, st.cancel)
	w.startReceiving(st)
	resp, err := st.rpc.Recv()
	w.stopReceiving()
	stop() // if ctx has taken the stream along, the next Recv says so
	return resp, classify(err)
}

// attach returns the stream to read from.
func (w *watcher) attach(ctx context.Context) (*stream, error) {
	if w.stream != nil {
		return w.stream, nil
	}
	background, cancel := context.WithCancel(clientv3.WithRequireLeader(w.store.client.Ctx()))
	st := &stream{cancel: cancel}
	stop := context.AfterFunc(ctx, cancel)
	err := st.open(background, w.store.watches, w.request())
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, classify(err)
	}
	return st, w.adopt(st)
}

// open starts the watch. An error of sending the request comes from Recv.
func (st *stream) open(ctx context.Context, watches pb.WatchClient, create *pb.WatchRequest) error {
	rpc, err := watches.Watch(ctx, streamOptions...)
	if err != nil {
		return err
	}
	st.rpc = rpc
	_ = rpc.Send(create)
	return nil
}

func (w *watcher) request() *pb.WatchRequest {
	keys := prefixSpan(w.store.name(w.prefix))
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key:            []byte(keys.from),
		RangeEnd:       []byte(keys.to),
		StartRevision:  signed(w.through) + 1,
		PrevKv:         true,
		Fragment:       true,
		ProgressNotify: true,
	}}}
}

// adopt makes a stream the watcher's own, for Close to end.
func (w *watcher) adopt(st *stream) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		st.cancel()
		return storage.ErrClosed
	}
	w.stream = st
	return nil
}

func (w *watcher) markCreated() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream != nil {
		w.stream.created = true
	}
}

func (w *watcher) isCreated() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stream != nil && w.stream.created
}

// drop gives up the stream, and the revision that it did not finish.
func (w *watcher) drop() {
	w.held = nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream != nil {
		w.stream.cancel()
		w.stream = nil
	}
}

// accept moves the cursor by what a response tells and returns its events.
func (w *watcher) accept(resp *pb.WatchResponse) ([]storage.Event, error) {
	switch {
	case resp.CompactRevision != 0:
		return nil, fmt.Errorf("%w: up to revision %d", storage.ErrCompacted, resp.CompactRevision)
	case resp.Canceled:
		return nil, cancelled(resp.CancelReason)
	case resp.Created:
		w.backoff = 0
		w.markCreated()
		return nil, nil
	case !w.isCreated():
		return nil, nil
	case len(resp.Events) == 0:
		w.through = max(w.through, storage.Revision(resp.Header.Revision))
		return nil, nil
	}
	return w.deliver(resp)
}

// deliver returns the events of the revisions that a response completes. The
// last one's revision, not the header's, is how far the watcher has come: the
// header is the member's head, and more may follow before it.
func (w *watcher) deliver(resp *pb.WatchResponse) ([]storage.Event, error) {
	events := w.held
	w.held = nil
	for _, e := range resp.Events {
		event, err := w.event(e)
		if err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	if resp.Fragment {
		events, w.held = splitLast(events)
	}
	if len(events) > 0 {
		w.through = events[len(events)-1].Revision
	}
	return events, nil
}

// splitLast parts the events of the last revision from the others.
func splitLast(events []storage.Event) (others, last []storage.Event) {
	i := len(events)
	for i > 0 && events[i-1].Revision == events[len(events)-1].Revision {
		i--
	}
	return slices.Clip(events[:i]), slices.Clone(events[i:])
}

func (w *watcher) event(e *mvccpb.Event) (storage.Event, error) {
	event := storage.Event{
		Key:      storage.Key(e.Kv.Key[len(w.store.prefix):]),
		Revision: storage.Revision(e.Kv.ModRevision),
		Deleted:  e.Type == mvccpb.Event_DELETE,
		Previous: w.store.entry(e.PrevKv),
	}
	if !event.Deleted {
		event.Value = e.Kv.Value
	}
	if created := e.Type == mvccpb.Event_PUT && e.Kv.CreateRevision == e.Kv.ModRevision; !created && e.PrevKv == nil {
		return event, fmt.Errorf("%w: what revision %d of %q replaced", storage.ErrCompacted, event.Revision, event.Key)
	}
	return event, nil
}

// cancelled explains why a member refused or ended a watch. The reason is the
// text of an error, with or without its gRPC code.
func cancelled(reason string) error {
	for _, known := range []error{
		rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty,
		rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision, rpctypes.ErrCompacted,
	} {
		if strings.Contains(reason, known.Error()) {
			return classify(known)
		}
	}
	return fmt.Errorf("the watch was cancelled: %s", reason)
}
