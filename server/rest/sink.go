package rest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/server/gather"
	"github.com/even-keel/evenkeel/server/watch"
)

// sink is where a watch's events go.
type sink interface {
	// object sends a stored object, from its own bytes if they will do.
	object(event string, o *watch.Object) error
	// event sends an event of a kind, whose object is o.
	event(kind string, o *watch.Object, e *watch.Event) error
	// typed sends anything else: bookmarks and errors.
	typed(event string, obj runtime.Object) error
	flush() error
	close()
}

// openSink begins the answer of a watch; its headers are sent at once. gone is
// called when the client leaves, unless the request's context tells.
func (c *call) openSink(gone func()) (sink, error) {
	e := &eventEncoder{call: c}
	if websocket.IsWebSocketUpgrade(c.r) {
		return c.openSocket(e, gone)
	}
	media := c.out.media
	switch {
	case media == mediaProto:
		media = mediaProto + ";stream=watch"
	case media == mediaYAML:
		return nil, notAcceptable("only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch")
	}
	h := c.w.Header()
	c.writeWarnings()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-cache, private")
	c.w.WriteHeader(http.StatusOK)
	s := &stream{encoder: e, w: c.w, control: http.NewResponseController(c.w)}
	s.guard = guard{conn: gather.Of(c.ctx()), control: s.control}
	return s, s.flush()
}

// eventEncoder turns events into bytes in the form that the client wants.
type eventEncoder struct {
	*call
	rows int // of tables sent so far
}

// frame returns the bytes of one event.
func (e *eventEncoder) frame(dst []byte, event string, o *watch.Object) ([]byte, error) {
	if e.asStored(o) {
		return watch.AppendLine(dst, event, o), nil
	}
	if e.out.as == "" && e.out.media == mediaProto {
		message, err := e.res.protoBytes(o)
		if err != nil {
			return nil, err
		}
		apiVersion, kind := e.res.gvk.ToAPIVersionAndKind()
		head, tail := unknownAround(apiVersion, kind, len(message))
		return appendProtoEvent(dst, event, bytes.Join([][]byte{head, message, tail}, nil)), nil
	}
	obj, err := e.res.decoded(o)
	if err == nil {
		obj, err = e.versioned(obj)
	}
	if err == nil {
		obj, err = e.transformEvent(obj)
	}
	if err != nil {
		return nil, err
	}
	return e.typedFrame(dst, event, obj)
}

// asStored reports whether the client gets an object's own bytes.
func (e *eventEncoder) asStored(o *watch.Object) bool {
	return e.out.as == "" && e.out.media == mediaJSON && e.res.asStored(o)
}

// transformEvent is transform for watches: a table has one row, and says what
// its columns are only the first time.
func (e *eventEncoder) transformEvent(obj runtime.Object) (runtime.Object, error) {
	switch e.out.as {
	case "Table":
		t, err := e.table([]runtime.Object{obj}, metav1.ListMeta{ResourceVersion: resourceVersion(obj)})
		if err != nil {
			return nil, err
		}
		if e.rows > 0 {
			t.ColumnDefinitions = nil
		}
		e.rows++
		return t, nil
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		return e.partial(obj)
	}
	return obj, nil
}

func (e *eventEncoder) typedFrame(dst []byte, event string, obj runtime.Object) ([]byte, error) {
	body, err := e.encodeAs(output{media: e.out.media}, obj)
	if err != nil {
		return nil, err
	}
	if e.out.media == mediaProto {
		return appendProtoEvent(dst, event, body), nil
	}
	if e.out.media == mediaYAML {
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, err
		}
	}
	return fmt.Appendf(dst, `{"type":%q,"object":%s}`+"\n", event, bytes.TrimSpace(body)), nil
}

// protoLength is how many bytes hold the length of an event in protobuf.
const protoLength = 4

// appendProtoEvent appends a WatchEvent behind its length: the type is field 1,
// the object, wrapped in a message with field 1, field 2.
func appendProtoEvent(dst []byte, event string, object []byte) []byte {
	size := fieldBytes(len(event)) + fieldBytes(fieldBytes(len(object)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	dst = appendField(dst, 1, []byte(event))
	dst = append(dst, 2<<3|2)
	dst = binary.AppendUvarint(dst, uint64(fieldBytes(len(object))))
	return appendField(dst, 1, object)
}

// special makes of a bookmark or an error what the client can read.
func (e *eventEncoder) special(event string, obj runtime.Object) (runtime.Object, error) {
	if event == "ERROR" || e.out.as == "" {
		return obj, nil
	}
	if e.out.as == "Table" {
		t, err := e.table([]runtime.Object{obj}, metav1.ListMeta{ResourceVersion: resourceVersion(obj)})
		if err == nil && e.rows > 0 {
			t.ColumnDefinitions = nil
		}
		return t, err
	}
	return e.partial(obj)
}

// stream is a sink over a plain HTTP answer. Events are gathered, and go out in
// few pieces: with HTTP/2 each piece is a matter of several goroutines.
type stream struct {
	encoder *eventEncoder
	w       http.ResponseWriter
	control *http.ResponseController
	guard   guard
	batch   *[]byte // of events that are not written yet; nil if there are none
	run     []byte  // of lines that come before the batch; others send them too
}

// batchBytes is from which length on a batch is written. With what HTTP and TLS
// add it fits what a connection holds.
const batchBytes = 60 << 10

// batches holds no large buffers, nor do streams between events.
var batches = sync.Pool{New: func() any { b := make([]byte, 0, batchBytes+4<<10); return &b }}

// runBytes is from which length on a run is written when it ends; a shorter one is
// copied, for each piece has its price.
const runBytes = 16 << 10

// event sends lines that lie behind one another from where they are, and copies others.
func (s *stream) event(kind string, o *watch.Object, e *watch.Event) error {
	if kind != e.Kind() || !s.encoder.asStored(o) {
		return s.object(kind, o)
	}
	line := e.Line()
	if line == nil {
		return s.object(kind, o)
	}
	if s.batch == nil {
		if s.run == nil {
			s.run = line
			return nil
		}
		var joined bool
		switch s.run, joined = watch.Join(s.run, line); {
		case joined && len(s.run) < batchBytes:
			return nil
		case joined:
			return s.writeOn()
		case len(s.run) >= runBytes:
			err := s.writeOn()
			s.run = line
			return err
		}
	}
	// A run comes before the batch: one that has ended begins it, if there is none.
	if s.batch == nil {
		batch := append(s.pending(), s.run...)
		*s.batch, s.run = batch, nil
	}
	return s.append(append(s.pending(), line...), nil)
}

func (s *stream) object(event string, o *watch.Object) error {
	batch, err := s.encoder.frame(s.pending(), event, o)
	return s.append(batch, err)
}

func (s *stream) typed(event string, obj runtime.Object) error {
	obj, err := s.encoder.special(event, obj)
	if err != nil {
		return err
	}
	batch, err := s.encoder.typedFrame(s.pending(), event, obj)
	return s.append(batch, err)
}

// pending is what events are appended to.
func (s *stream) pending() []byte {
	if s.batch == nil {
		s.batch = batches.Get().(*[]byte)
	}
	return *s.batch
}

func (s *stream) append(batch []byte, err error) error {
	if err != nil {
		return err
	}
	if *s.batch = batch; len(batch) < batchBytes {
		return nil
	}
	return s.writeOn()
}

// writeOn writes what there is, while more is to come.
func (s *stream) writeOn() error {
	s.guard.begin()
	return s.write()
}

func (s *stream) write() error {
	if s.run != nil {
		_, err := s.w.Write(s.run)
		if s.run = nil; err != nil {
			return err
		}
	}
	if s.batch == nil {
		return nil
	}
	_, err := s.w.Write(*s.batch)
	if cap(*s.batch) <= 2*batchBytes {
		*s.batch = (*s.batch)[:0]
		batches.Put(s.batch)
	}
	s.batch = nil
	return err
}

func (s *stream) flush() error {
	s.guard.begin()
	err := s.write()
	if err == nil {
		err = s.control.Flush()
	}
	return errors.Join(err, s.guard.end())
}

func (s *stream) close() { _ = s.guard.end() }

// socket is a sink over a WebSocket: each event is a message.
type socket struct {
	encoder *eventEncoder
	conn    *websocket.Conn
	// read is closed when nothing more is read from the client.
	read chan struct{}
}

var upgrader = websocket.Upgrader{
	Subprotocols: []string{"binary.k8s.io", "base64.binary.k8s.io"},
	// Browsers are let in by their credentials, as all clients are.
	CheckOrigin: func(*http.Request) bool { return true },
}

func (c *call) openSocket(e *eventEncoder, gone func()) (sink, error) {
	conn, err := upgrader.Upgrade(c.w, c.r, nil)
	if err != nil {
		return nil, fmt.Errorf("upgrade to a WebSocket: %w", err)
	}
	conn.SetReadLimit(1 << 10)
	s := &socket{encoder: e, conn: conn, read: make(chan struct{})}
	go s.readAll(gone)
	return s, nil
}

// readAll waits for the client to close; what it says is ignored.
func (s *socket) readAll(gone func()) {
	defer close(s.read)
	defer gone()
	for {
		if _, _, err := s.conn.NextReader(); err != nil {
			return
		}
	}
}

func (s *socket) event(kind string, o *watch.Object, _ *watch.Event) error { return s.object(kind, o) }

func (s *socket) object(event string, o *watch.Object) error {
	frame, err := s.encoder.frame(nil, event, o)
	return s.write(frame, err)
}

func (s *socket) typed(event string, obj runtime.Object) error {
	obj, err := s.encoder.special(event, obj)
	if err != nil {
		return err
	}
	frame, err := s.encoder.typedFrame(nil, event, obj)
	return s.write(frame, err)
}

func (s *socket) write(frame []byte, err error) error {
	if err != nil {
		return err
	}
	kind := websocket.TextMessage
	if s.encoder.out.media == mediaProto {
		kind, frame = websocket.BinaryMessage, frame[protoLength:] // a message knows its length
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	return s.conn.WriteMessage(kind, frame)
}

func (s *socket) flush() error { return nil }

func (s *socket) close() {
	_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
	_ = s.conn.Close()
	<-s.read
}
