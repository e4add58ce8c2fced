package h2

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// writer sends frames. All of a frame is sent under its lock.
type writer struct {
	mu    sync.Mutex
	tls   *tls.Conn
	small bytes.Buffer // of frames that go out together
	f     *http2.Framer
	table *hpack.Encoder
	block bytes.Buffer
	head  [9]byte

	// tableLimit is how large the client lets the table be. It does not grow again.
	tableLimit atomic.Uint32
	replies    replies
}

// replies are frames of the connection's reader, which must not wait until the client
// reads: the client may wait until it does.
type replies struct {
	mu      sync.Mutex
	frames  bytes.Buffer
	f       *http2.Framer
	sending bool // somebody sends them, and looks for more
	stopped bool // there are no more
}

// maxReplies is how many bytes of replies a client may leave unread.
const maxReplies = 64 << 10

func (w *writer) init(t *tls.Conn) {
	w.tls = t
	w.f = http2.NewFramer(&w.small, nil)
	w.table = hpack.NewEncoder(&w.block)
	w.tableLimit.Store(tableSize)
	w.replies.f = http2.NewFramer(&w.replies.frames, nil)
}

// limitTable is for the connection's reader.
func (w *writer) limitTable(size uint32) { w.tableLimit.Store(min(size, w.tableLimit.Load())) }

// reply has the frames that add writes be sent, without waiting for it: by who sends
// already, or by one that start starts. A client that leaves too many unread is left.
func (w *writer) reply(add func(*http2.Framer) error, start func(send func())) {
	r := &w.replies
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	if r.frames.Len() > maxReplies || add(r.f) != nil {
		_ = w.tls.Close() // with it, run ends
		return
	}
	if !r.sending {
		r.sending = true
		start(w.sendReplies)
	}
}

// stopReplies starts nobody any more: a body may be read when its connection has ended.
func (w *writer) stopReplies() {
	w.replies.mu.Lock()
	defer w.replies.mu.Unlock()
	w.replies.stopped = true
}

// sendReplies sends replies until there are none.
func (w *writer) sendReplies() {
	for w.sendSome() {
	}
}

func (w *writer) sendSome() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.takeReplies() && w.flush() == nil
}

func (w *writer) takeReplies() bool {
	r := &w.replies
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sending = r.frames.Len() > 0
	_, _ = r.frames.WriteTo(&w.small) // in memory
	return r.sending
}

// frames sends what add writes.
func (w *writer) frames(add func(*http2.Framer) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.takeReplies()
	if err := add(w.f); err != nil {
		w.small.Reset()
		return err
	}
	return w.flush()
}

func (w *writer) flush() error {
	_, err := w.tls.Write(w.small.Bytes())
	w.small.Reset()
	if err != nil {
		_ = w.tls.Close() // with it, run ends
	}
	return err
}

// copied is the length up to which data is copied behind its frame's head; what is
// longer is a piece of its own.
const copied = 4 << 10

// data sends a stream's data, in as many frames as it takes. Replies go first: what
// is sent may follow from them.
func (w *writer) data(id uint32, p []byte, end bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.takeReplies()
	return w.dataLocked(id, p, end)
}

func (w *writer) dataLocked(id uint32, p []byte, end bool) error {
	for {
		n := min(len(p), frameSize)
		last := n == len(p)
		if n <= copied {
			if err := w.f.WriteData(id, end && last, p[:n]); err != nil {
				return err
			}
		} else if err := w.long(id, p[:n], end && last); err != nil {
			return err
		}
		if p = p[n:]; last {
			if w.small.Len() == 0 {
				return nil
			}
			return w.flush()
		}
	}
}

// long sends a long frame from where its data is.
func (w *writer) long(id uint32, p []byte, end bool) error {
	w.head = [9]byte{byte(len(p) >> 16), byte(len(p) >> 8), byte(len(p)), byte(http2.FrameData), 0,
		byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}
	if end {
		w.head[4] = byte(http2.FlagDataEndStream)
	}
	w.small.Write(w.head[:])
	err := w.flush()
	if err == nil {
		_, err = w.tls.Write(p)
	}
	if err != nil {
		_ = w.tls.Close()
	}
	return err
}

// answer sends the head of an answer, and what of its body goes with it. A head that
// only informs is not sent after the answer's own.
func (w *writer) answer(s *stream, status int, header http.Header, p []byte, end bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if status < 200 && s.answered {
		return nil
	}
	s.answered = status >= 200
	w.takeReplies()
	err := w.headersLocked(s.id, fields(status, header), end && len(p) == 0)
	if err != nil {
		w.small.Reset()
		return err
	}
	if len(p) == 0 {
		return w.flush()
	}
	return w.dataLocked(s.id, p, end)
}

// headersLocked adds a header, and frames that go on with it if it is long.
func (w *writer) headersLocked(id uint32, fields func(add func(name, value string)), end bool) error {
	w.block.Reset()
	w.table.SetMaxDynamicTableSizeLimit(w.tableLimit.Load())
	fields(func(name, value string) { _ = w.table.WriteField(hpack.HeaderField{Name: name, Value: value}) }) // to memory
	rest := w.block.Bytes()
	n := min(len(rest), frameSize)
	err := w.f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: rest[:n], EndStream: end, EndHeaders: n == len(rest),
	})
	for rest = rest[n:]; err == nil && len(rest) > 0; rest = rest[n:] {
		n = min(len(rest), frameSize)
		err = w.f.WriteContinuation(id, n == len(rest), rest[:n])
	}
	return err
}
