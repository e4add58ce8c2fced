package informer

import (
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// The bounds of an intake: how many objects and bytes are decoded as one piece of
// work, how many pieces wait to be taken, and how many objects are taken at once.
const (
	chunkItems = 64
	chunkBytes = 128 << 10
	maxChunks  = 16
	maxTaken   = 512
	// chunkFor is how old a chunk may be when something is added to it.
	chunkFor = 50 * time.Millisecond
	// idleFor is how long a reader has to have waited for an event to decode it
	// itself.
	idleFor = 20 * time.Microsecond
)

// intake reads a list or a watch, decodes it, and hands over what came, in order.
//
// One goroutine reads. It decodes what it read itself, unless one of the set's
// decoders is free to do it meanwhile; objects go to decoders in chunks while a
// state is sent, and one by one after that, so that no event waits for another. An
// event that it had to wait for it decodes too: the next is not there yet, and to
// wake somebody takes longer than to decode; and on one processor, each: who was told
// of the last comes before the next is decoded.
// Chunks are queued in the order of reading, each with a signal that it is
// decoded, and the reader stops when the queue is full. Where nothing is queued, and
// who takes allows it, the reader hands over itself.
type intake[T client.Object] struct {
	next   func(*[]byte) (client.Frame, error)
	close  func()
	decode func(client.Frame) (T, error)
	// decodeState decodes the objects of a state, and has the store prepare them.
	decodeState func([]item[T])
	decoders    chan struct{}

	chunks chan *chunk[T]
	queued atomic.Int64 // chunks that were sent and are not handed over
	// turn is held by who hands over; inline, if it is set then, is how the reader
	// does it.
	turn   sync.Mutex
	inline func([]item[T]) error
}

// item is an object that came.
type item[T client.Object] struct {
	frame client.Frame
	obj   T
	err   error
	ready cache.Prepared[T] // for the store, if it was prepared
}

// chunk is a piece of work for a decoder. One with an err has no items, and is
// the last.
type chunk[T client.Object] struct {
	buf   []byte
	items []item[T]
	began time.Time
	bulk  bool // part of a state
	err   error
	done  chan struct{}
}

// start begins to read; bulk says that the server begins with a state.
func (in *intake[T]) start(bulk bool) {
	in.chunks = make(chan *chunk[T], maxChunks)
	go in.read(bulk)
}

// end ends the reading, and returns once nothing of it goes on.
func (in *intake[T]) end() {
	in.close()
	for c := range in.chunks {
		<-c.done
	}
}

func (in *intake[T]) read(bulk bool) {
	defer close(in.chunks)
	c := in.newChunk()
	for {
		frame, err := in.next(&c.buf)
		if err != nil {
			in.send(c)
			last := in.newChunk()
			last.err = err
			in.send(last)
			return
		}
		c.items = append(c.items, item[T]{frame: frame})
		c.bulk = bulk
		if frame.Type == client.Bookmark {
			bulk = false // as good as: the state is at its end, or was never sent
		}
		if !bulk || len(c.items) >= chunkItems || len(c.buf) >= chunkBytes || time.Since(c.began) > chunkFor {
			in.send(c)
			c = in.newChunk()
		}
	}
}

// buffers are for chunks of up to a few times chunkBytes.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func (in *intake[T]) newChunk() *chunk[T] {
	return &chunk[T]{buf: (*buffers.Get().(*[]byte))[:0], began: time.Now(), done: make(chan struct{})}
}

// send has a chunk decoded, and queues it.
func (in *intake[T]) send(c *chunk[T]) {
	decoders := in.decoders
	if !c.bulk && (time.Since(c.began) > idleFor || runtime.GOMAXPROCS(0) == 1) {
		decoders = nil // there is nobody to decode it meanwhile, or nothing to read
	}
	select {
	case decoders <- struct{}{}:
		go func() {
			in.decodeAll(c)
			<-in.decoders
			close(c.done)
		}()
	default:
		in.decodeAll(c)
		close(c.done)
		if in.hand(c) {
			return
		}
	}
	in.queued.Add(1)
	in.chunks <- c
}

// hand hands a chunk over, if it is the next and nobody is at it.
func (in *intake[T]) hand(c *chunk[T]) bool {
	if c.err != nil || !in.turn.TryLock() {
		return false
	}
	defer in.turn.Unlock()
	if in.inline == nil || in.queued.Load() > 0 {
		return false
	}
	c.err = in.inline(c.items)
	c.items = nil
	runtime.Gosched()   // those who were told come first, and then what else has come
	return c.err == nil // else who takes is told of the end
}

func (in *intake[T]) decodeAll(c *chunk[T]) {
	if c.bulk {
		in.decodeState(c.items)
	} else {
		for i := range c.items {
			it := &c.items[i]
			it.obj, it.err = in.decode(it.frame)
		}
	}
	for i := range c.items {
		c.items[i].frame.Object.Bytes = nil
	}
	if buf := c.buf; cap(buf) <= 4*chunkBytes {
		buffers.Put(&buf)
	}
	c.buf = nil
}

// take returns what has come since c was received: c and what is ready behind it, n
// chunks in all. An error is the end, after the items.
func (in *intake[T]) take(c *chunk[T]) (items []item[T], n int64, err error) {
	for {
		<-c.done
		n++
		if c.err != nil {
			return items, n, c.err
		}
		items = append(items, c.items...)
		if len(items) >= maxTaken {
			return items, n, nil
		}
		select {
		case more, ok := <-in.chunks:
			if !ok {
				return items, n, io.ErrUnexpectedEOF // the last has an error, always
			}
			c = more
		default:
			return items, n, nil
		}
	}
}

// initialEnd reports whether an item is the bookmark that ends a state.
func (it item[T]) initialEnd() bool {
	return it.frame.Type == client.Bookmark && it.obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// ended reports whether an error is the regular end of a stream.
func ended(err error) bool { return err == nil || errors.Is(err, io.EOF) }
