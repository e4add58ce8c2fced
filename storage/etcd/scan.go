package etcd

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/even-keel/evenkeel/storage"
)

const (
	// A scan is read in chunks of about chunkBytes, so that no response is huge.
	chunkBytes = 4 << 20
	firstChunk = 128
	maxChunk   = 1000

	// scanAttempts is how often a scan of the newest state starts over when a
	// compaction overtakes it.
	scanAttempts = 3
)

// span is a range of etcd's keys: from is in it, to is not.
type span struct{ from, to string }

// prefixSpan returns the keys with a prefix. It has an end as long as the
// prefix has a byte other than 0xff, which Options.Prefix sees to.
func prefixSpan(prefix string) span {
	return span{from: prefix, to: clientv3.GetPrefixRangeEnd(prefix)}
}

// startAt leaves out what comes before a key.
func (sp span) startAt(key string) span {
	sp.from = max(sp.from, key)
	return sp
}

func (sp span) empty() bool { return sp.from >= sp.to }

// Scan implements [storage.Store].
func (s *Store) Scan(ctx context.Context, r storage.Range) (storage.Page, error) {
	page, err := s.scan(ctx, r)
	for attempt := 1; errors.Is(err, storage.ErrCompacted) && r.Revision == 0 && attempt < scanAttempts; attempt++ {
		page, err = s.scan(ctx, r)
	}
	if err != nil {
		return storage.Page{}, fmt.Errorf("scan %q at revision %d: %w", r.Prefix, r.Revision, err)
	}
	return page, nil
}

func (s *Store) scan(ctx context.Context, r storage.Range) (storage.Page, error) {
	rest := prefixSpan(s.name(r.Prefix)).startAt(s.name(r.Start))
	if rest.empty() {
		return s.emptyPage(ctx, r.Revision)
	}
	page := storage.Page{Revision: r.Revision}
	size := firstChunk
	for {
		limit := size
		if r.Limit > 0 {
			limit = min(limit, r.Limit-len(page.Entries))
		}
		resp, err := s.readChunk(ctx, rest, page.Revision, limit)
		if errors.Is(err, storage.ErrTooLarge) && limit > 1 {
			size = (limit + 3) / 4
			continue
		}
		if err != nil {
			return storage.Page{}, err
		}
		size = s.take(&page, resp)
		if !page.More || len(page.Entries) == r.Limit {
			return page, nil
		}
		rest = rest.startAt(s.name(page.Next))
	}
}

func (s *Store) readChunk(ctx context.Context, sp span, at storage.Revision, limit int) (*clientv3.GetResponse, error) {
	return s.read(ctx, sp.from, clientv3.WithRange(sp.to), clientv3.WithRev(signed(at)), clientv3.WithLimit(int64(limit)))
}

// emptyPage answers for a range without keys, if the state is there to read.
func (s *Store) emptyPage(ctx context.Context, at storage.Revision) (storage.Page, error) {
	resp, err := s.read(ctx, s.prefix, clientv3.WithRev(signed(at)), clientv3.WithCountOnly())
	if err != nil {
		return storage.Page{}, err
	}
	page := storage.Page{Revision: at}
	s.take(&page, resp)
	return page, nil
}

// take adds a chunk to a page and returns how many keys the next should have.
func (s *Store) take(page *storage.Page, resp *clientv3.GetResponse) (nextChunk int) {
	if page.Revision == 0 {
		page.Revision = storage.Revision(resp.Header.Revision)
	}
	bytes := 0
	for _, kv := range resp.Kvs {
		page.Entries = append(page.Entries, s.entry(kv))
		bytes += len(kv.Key) + len(kv.Value)
	}
	page.More, page.Next = resp.More, ""
	if page.More {
		last := page.Entries[len(page.Entries)-1].Key
		page.Next = last + "\x00"
	}
	return chunkFor(bytes, len(resp.Kvs))
}

// chunkFor returns how many keys fit a chunk if they are as large as n others.
func chunkFor(bytes, n int) int {
	if n == 0 || bytes == 0 {
		return maxChunk
	}
	return min(max(chunkBytes*n/bytes, 1), maxChunk)
}
