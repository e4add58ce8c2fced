package h2

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestABacklogIsABuffer(t *testing.T) {
	var b backlog
	var want bytes.Buffer
	for i := range 2_000 {
		p := bytes.Repeat([]byte{byte(i)}, rand.IntN(2*frameSize))
		switch rand.IntN(100) {
		case 0:
			if n := b.drop(); n != int64(want.Len()) {
				t.Fatalf("dropped %d of %d", n, want.Len())
			}
			want.Reset()
		default:
			b.add(p)
			want.Write(p)
			got := make([]byte, rand.IntN(2*frameSize+10))
			n := b.take(got)
			if m := min(len(got), want.Len()); n != m || !bytes.Equal(got[:n], want.Next(m)) {
				t.Fatalf("took %d of %d", n, m)
			}
		}
		if b.size != want.Len() || (b.size == 0) != (len(b.pieces) == 0) {
			t.Fatalf("%d bytes in %d pieces, want %d", b.size, len(b.pieces), want.Len())
		}
	}
}
