package storage_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/etcd"
	"github.com/even-keel/evenkeel/test/storage/etcdtest"
)

// wire forwards connections until it is cut, without a word to either side.
type wire struct {
	listener net.Listener
	target   string
	forwards sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	// flow is held to read by who forwards, to write by who has cut the wire.
	flow sync.RWMutex
}

func newWire(t *testing.T, target string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: listener, target: strings.TrimPrefix(target, "http://")}
	w.forwards.Go(w.accept)
	return w
}

func (w *wire) accept() {
	for {
		in, err := w.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, in, out)
		w.mu.Unlock()
		w.forwards.Go(func() { w.forward(in, out) })
		w.forwards.Go(func() { w.forward(out, in) })
	}
}

func (w *wire) forward(to io.WriteCloser, from io.Reader) {
	defer func() { _ = to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		w.flow.RLock()
		if n > 0 && err == nil {
			_, err = to.Write(buf[:n])
		}
		w.flow.RUnlock()
		if err != nil {
			return
		}
	}
}

// close ends a wire that has been cut.
func (w *wire) close() {
	_ = w.listener.Close()
	w.mu.Lock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.flow.Unlock()
	w.forwards.Wait()
}

// TestEtcdMemberFallsSilent: a member whose machine is gone closes nothing.
// Watchers must notice by themselves and go on with another.
func TestEtcdMemberFallsSilent(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 15 seconds to notice")
	}
	cluster := etcdtest.Start(t, 1)
	endpoint := cluster.Endpoints()[0]
	w := newWire(t, endpoint)
	store := openEtcd(t, etcd.Options{
		Endpoints:      []string{endpoint, "http://" + w.listener.Addr().String()},
		RequestTimeout: time.Second,
	})
	first := mustCommit(t, store, storage.Create("a", []byte("1")))
	watchers := make([]storage.Watcher, 4)
	for i := range watchers {
		if i == len(watchers)/2 {
			mustHead(t, store) // one request more, and round-robin puts streams on the other
		}
		watchers[i] = store.Watch("", first-1)
		defer watchers[i].Close()
		if _, err := watchers[i].Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.flow.Lock()
	defer w.close()
	last, err := replaceOnceAvailable(t.Context(), store, "a", first)
	if err != nil {
		t.Fatal(err)
	}
	for i, watcher := range watchers {
		batch, err := watcher.Next(t.Context())
		if err == nil && (len(batch.Events) != 1 || batch.Events[0].Revision != last) {
			err = errors.New("another event")
		}
		if err != nil {
			t.Errorf("watcher %d: %+v, %v", i, batch, err)
		}
	}
}
