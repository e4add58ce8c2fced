package h2

import "sync"

// backlog is what of a body has come and has not been read. Its memory is used again.
type backlog struct {
	pieces []*[]byte
	read   int // of the first piece
	size   int
}

var pieces = sync.Pool{New: func() any { p := make([]byte, 0, frameSize); return &p }}

func (b *backlog) add(p []byte) {
	b.size += len(p)
	for len(p) > 0 {
		if n := len(b.pieces); n == 0 || len(*b.pieces[n-1]) == frameSize {
			b.pieces = append(b.pieces, pieces.Get().(*[]byte))
		}
		last := b.pieces[len(b.pieces)-1]
		n := min(len(p), frameSize-len(*last))
		*last = append(*last, p[:n]...)
		p = p[n:]
	}
}

// take moves as much as there is to p.
func (b *backlog) take(p []byte) (n int) {
	for len(p) > n && b.size > 0 {
		m := copy(p[n:], (*b.pieces[0])[b.read:])
		n, b.read, b.size = n+m, b.read+m, b.size-m
		if b.read == len(*b.pieces[0]) {
			b.dropFirst()
		}
	}
	return n
}

// drop forgets all, and returns how much that was.
func (b *backlog) drop() (n int64) {
	n, b.size = int64(b.size), 0
	for len(b.pieces) > 0 {
		b.dropFirst()
	}
	return n
}

func (b *backlog) dropFirst() {
	first := b.pieces[0]
	b.pieces[0] = nil
	b.pieces, b.read = b.pieces[1:], 0
	*first = (*first)[:0]
	pieces.Put(first)
}
