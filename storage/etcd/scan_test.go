package etcd

import (
	"errors"
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/even-keel/evenkeel/storage"
)

func TestASpanHoldsTheKeysOfItsRange(t *testing.T) {
	s := &Store{prefix: "/p/"}
	for name, test := range map[string]struct {
		prefix, start storage.Key
		want          span
	}{
		"everything":                        {"", "", span{"/p/", "/p0"}},
		"a prefix":                          {"a/", "", span{"/p/a/", "/p/a0"}},
		"a start within the prefix":         {"a/", "a/b", span{"/p/a/b", "/p/a0"}},
		"a start at the prefix":             {"a/", "a/", span{"/p/a/", "/p/a0"}},
		"a start below the prefix":          {"b", "a", span{"/p/b", "/p/c"}},
		"a start that begins the prefix":    {"b/c", "b", span{"/p/b/c", "/p/b/d"}},
		"a prefix that ends in 0xff":        {"a\xff", "", span{"/p/a\xff", "/p/b"}},
		"a prefix of 0xff":                  {"\xff\xff", "", span{"/p/\xff\xff", "/p0"}},
		"a start within a prefix of 0xff":   {"\xff", "\xff\xff\x01", span{"/p/\xff\xff\x01", "/p0"}},
		"a prefix of zeros":                 {"\x00", "", span{"/p/\x00", "/p/\x01"}},
		"a start of zeros, where all count": {"", "\x00", span{"/p/\x00", "/p0"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := prefixSpan(s.name(test.prefix)).startAt(s.name(test.start))
			if got != test.want || got.empty() {
				t.Errorf("got %q, empty: %v; want %q", got, got.empty(), test.want)
			}
		})
	}
}

func TestASpanPastItsPrefixIsEmpty(t *testing.T) {
	s := &Store{prefix: "/p/"}
	for prefix, start := range map[storage.Key]storage.Key{
		"a/": "a0", "a": "b", "b": "\xff", "a\xff": "b\x00", "\x00": "\x01",
	} {
		if sp := prefixSpan(s.name(prefix)).startAt(s.name(start)); !sp.empty() {
			t.Errorf("prefix %q from %q: %q is not empty", prefix, start, sp)
		}
	}
}

func TestAChunkIsBoundedByKeysAndByBytes(t *testing.T) {
	for name, test := range map[string]struct{ bytes, n, want int }{
		"nothing seen":    {0, 0, maxChunk},
		"tiny values":     {1000, 100, maxChunk},
		"large values":    {100 << 20, 100, 4},
		"enormous values": {800 << 20, 100, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := chunkFor(test.bytes, test.n); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// numbered answers a read of the keys 000 to 299 as they stand at a revision.
func numbered(r *pb.RangeRequest, head int64) *pb.RangeResponse {
	resp := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: head}}
	for n := range 300 {
		name := fmt.Sprintf("%s%03d", defaultPrefix, n)
		switch {
		case name < string(r.Key):
		case len(resp.Kvs) == int(r.Limit):
			resp.More = true
		default:
			resp.Kvs = append(resp.Kvs, &mvccpb.KeyValue{Key: []byte(name), ModRevision: 2})
		}
	}
	return resp
}

func wantNumbered(t *testing.T, page storage.Page, at storage.Revision) {
	t.Helper()
	if len(page.Entries) != 300 || page.More || page.Revision != at {
		t.Fatalf("%d entries, more: %v, revision %d; want 300 at %d", len(page.Entries), page.More, page.Revision, at)
	}
	for n, entry := range page.Entries {
		if want := storage.Key(fmt.Sprintf("%03d", n)); entry.Key != want {
			t.Fatalf("entry %q, want %q", entry.Key, want)
		}
	}
}

func TestAScanWhoseChunksAreTooLargeAsksForSmallerOnes(t *testing.T) {
	m := &member{ranges: func(r *pb.RangeRequest) (*pb.RangeResponse, error) {
		if r.Limit > 10 {
			return nil, status.Error(codes.ResourceExhausted, "grpc: trying to send message larger than max (9 vs. 2)")
		}
		return numbered(r, 5), nil
	}}
	page, err := m.serve(t).Scan(t.Context(), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	wantNumbered(t, page, 5)
}

func TestAScanOfTheNewestStateSurvivesACompaction(t *testing.T) {
	head, compacted := int64(5), int64(0)
	m := &member{ranges: func(r *pb.RangeRequest) (*pb.RangeResponse, error) {
		if r.Revision == 0 && compacted == 0 { // it comes after the first chunk
			head, compacted = 7, 7
			return numbered(r, 5), nil
		}
		if r.Revision != 0 && r.Revision < compacted {
			return nil, rpctypes.ErrGRPCCompacted
		}
		return numbered(r, head), nil
	}}
	store := m.serve(t)
	page, err := store.Scan(t.Context(), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	wantNumbered(t, page, 7)
	if _, err := store.Scan(t.Context(), storage.Range{Revision: 5}); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("got error %v, want ErrCompacted", err)
	}
}
