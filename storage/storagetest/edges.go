package storagetest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/even-keel/evenkeel/storage"
)

var edgeBehaviours = behaviours{
	"the empty key is a key":                           emptyKey,
	"an empty value exists":                            emptyValues,
	"every byte can stand in a key and in a value":     everyByte,
	"a large value comes back whole":                   largeValue,
	"the longest key is taken and none longer":         longestKey,
	"a value over the bound is refused":                longestValue,
	"a delete must say where the key stands":           deleteFromNowhere,
	"the caller keeps the bytes it passed in":          callersBytes,
	"bytes handed out are not touched by later writes": readersBytes,
}

// longKey returns a key of n bytes.
func longKey(n int) storage.Key { return storage.Key(strings.Repeat("k", n)) }

// roundTrip reads an entry in every way that a store offers, the write that
// made it being the newest.
func (s *subject) roundTrip(ctx context.Context, want storage.Entry) {
	s.t.Helper()
	what := fmt.Sprintf("%.20q with %d bytes", want.Key, len(want.Value))
	s.same("Get "+what, want, s.get(ctx, want.Key))

	page := s.scan(ctx, storage.Range{Prefix: want.Key, Limit: 1})
	s.same("Scan "+what, []storage.Entry{want}, page.Entries)
	page = s.scan(ctx, storage.Range{Prefix: want.Key, Start: want.Key, Limit: 1, Revision: want.Revision})
	s.same("Scan at a revision "+what, []storage.Entry{want}, page.Entries)

	c := s.watch(want.Key, want.Revision-1)
	defer c.watcher.Close()
	if err := c.read(ctx, 1); err != nil {
		s.t.Fatal(err)
	}
	event := c.events[0]
	s.same("Watch "+what, want, storage.Entry{Key: event.Key, Value: event.Value, Revision: event.Revision})
}

func emptyKey(ctx context.Context, s *subject) {
	s.create(ctx, "a", "1")
	at := s.create(ctx, "", "nothing")
	s.roundTrip(ctx, storage.Entry{Value: []byte("nothing"), Revision: at})
	result, err := s.commit(ctx, storage.Create("", nil))
	s.wantErr("create of the empty key again", err, storage.ErrConflict)
	s.same("what stands there", storage.Entry{Value: []byte("nothing"), Revision: at}, result.Previous)
	at = s.replace(ctx, "", "something", at)
	s.delete(ctx, "", at)
	_, err = s.store.Get(ctx, "")
	s.wantErr("Get of the deleted empty key", err, storage.ErrNotFound)
	s.checkScan(ctx, storage.Range{}, s.ledger.newest())
	s.checkWatch(ctx, s.history(), "", 0)
}

func emptyValues(ctx context.Context, s *subject) {
	for name, empty := range map[storage.Key][]byte{"nil": nil, "empty": {}} {
		at := s.must(ctx, storage.Create(name, empty))
		s.roundTrip(ctx, storage.Entry{Key: name, Revision: at})
		at = s.replace(ctx, name, "full", at)
		at = s.must(ctx, storage.Replace(name, empty, at))
		s.roundTrip(ctx, storage.Entry{Key: name, Revision: at})
		result, err := s.commit(ctx, storage.Create(name, nil))
		s.wantErr("create of a key with an empty value", err, storage.ErrConflict)
		s.same("what stands there", storage.Entry{Key: name, Revision: at}, result.Previous)
		at = s.replace(ctx, name, "full again", at)
		s.delete(ctx, name, at)
	}
	s.checkWatch(ctx, s.history(), "", 0)
}

func everyByte(ctx context.Context, s *subject) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for i := range all {
		at := s.must(ctx, storage.Create(storage.Key(all[i:i+1]), all[i:i+1]))
		if i%51 == 0 {
			s.roundTrip(ctx, storage.Entry{Key: storage.Key(all[i : i+1]), Value: all[i : i+1], Revision: at})
		}
	}
	at := s.must(ctx, storage.Create(storage.Key(all), all))
	s.roundTrip(ctx, storage.Entry{Key: storage.Key(all), Value: all, Revision: at})
	for i := range all {
		s.checkScan(ctx, storage.Range{Prefix: storage.Key(all[i : i+1])}, at)
	}
	s.checkScan(ctx, storage.Range{}, at)
	s.checkWatch(ctx, s.history(), "", 0)
}

// randomBytes returns bytes that do not compress.
func randomBytes(rng *rand.Rand, n int) []byte {
	value := make([]byte, n)
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	return value
}

// large is the size of the largest value that every store takes.
const large = 3<<19 - 16<<10

func largeValue(ctx context.Context, s *subject) {
	rng := s.rand(0)
	for n := range 3 {
		key := storage.Key("large" + strconv.Itoa(n))
		value := randomBytes(rng, large)
		at := s.must(ctx, storage.Create(key, value))
		s.readLarge(ctx, storage.Entry{Key: key, Value: value, Revision: at})
	}
	if n := len(s.pages(ctx, storage.Range{Prefix: "large"})); n != 3 {
		s.t.Errorf("a scan of 3 large values has %d", n)
	}
	c := s.watch("large", 0)
	if err := c.read(ctx, 3); err != nil {
		s.t.Fatal(err)
	}
}

// readLarge is roundTrip without megabytes of differences.
func (s *subject) readLarge(ctx context.Context, want storage.Entry) {
	s.t.Helper()
	c := s.watch(want.Key, want.Revision-1)
	defer c.watcher.Close()
	if err := c.read(ctx, 1); err != nil {
		s.t.Fatal(err)
	}
	for how, got := range map[string][]byte{
		"get": s.get(ctx, want.Key).Value, "watch": c.events[0].Value,
		"scan": s.only(ctx, want.Key).Value,
	} {
		if !bytes.Equal(want.Value, got) {
			s.t.Errorf("%s: %d bytes came back as %d others", how, len(want.Value), len(got))
		}
	}
}

func longestKey(ctx context.Context, s *subject) {
	at := s.create(ctx, longKey(storage.MaxKeyBytes), "1")
	s.roundTrip(ctx, storage.Entry{Key: longKey(storage.MaxKeyBytes), Value: []byte("1"), Revision: at})
	_, err := s.commit(ctx, storage.Create(longKey(storage.MaxKeyBytes+1), nil))
	s.wantErr("a key of one byte more", err, storage.ErrTooLarge)
	worst := storage.Key(strings.Repeat("\x00", storage.MaxKeyBytes)) // escaped by some encodings
	at = s.create(ctx, worst, "1")
	s.roundTrip(ctx, storage.Entry{Key: worst, Value: []byte("1"), Revision: at})
	s.checkScan(ctx, storage.Range{}, at)
}

func longestValue(ctx context.Context, s *subject) {
	at := s.create(ctx, "key", "1")
	for name, w := range map[string]storage.Write{
		"create":  storage.Create("new", make([]byte, storage.MaxValueBytes+1)),
		"replace": storage.Replace("key", make([]byte, storage.MaxValueBytes+1), at),
	} {
		_, err := s.commit(ctx, w)
		s.wantErr(name+" with a value too large", err, storage.ErrTooLarge)
	}
	s.checkScan(ctx, storage.Range{}, at)
}

func deleteFromNowhere(ctx context.Context, s *subject) {
	at := s.create(ctx, "key", "1")
	for _, key := range []storage.Key{"key", "no such"} {
		_, err := s.commit(ctx, storage.Delete(key, 0))
		s.wantErr("delete without a revision", err, storage.ErrInvalid)
	}
	s.checkScan(ctx, storage.Range{}, at)
}

// callersBytes reuses one buffer for every write, as callers may.
func callersBytes(ctx context.Context, s *subject) {
	start := s.head(ctx)
	buffer := make([]byte, 100)
	for n := range 50 {
		for i := range buffer {
			buffer[i] = byte(n)
		}
		s.must(ctx, storage.Create(storage.Key(strconv.Itoa(n)), buffer)) // the ledger copies it
	}
	clear(buffer)
	h := s.history()
	for _, event := range h {
		s.same("Get", event.Value, s.get(ctx, event.Key).Value)
	}
	s.checkScan(ctx, storage.Range{}, h.newest())
	s.checkWatch(ctx, h, "", start)
}

// readersBytes keeps what was handed out, in every way there is, while the
// store moves on and forgets it.
func readersBytes(ctx context.Context, s *subject) {
	kept, wants := map[string][]byte{}, map[string]string{}
	keep := func(how string, n int, value []byte) {
		how = fmt.Sprintf("%s of value %d", how, n)
		kept[how], wants[how] = value, nth(n)
	}
	c := s.watch("key", s.head(ctx))
	var at storage.Revision
	for n := range s.size(50, 20) {
		result, err := s.commit(ctx, storage.Replace("key", []byte(nth(n)), at))
		if err != nil {
			s.t.Fatal(err)
		}
		at = result.Revision
		if err := c.read(ctx, n+1); err != nil {
			s.t.Fatal(err)
		}
		keep("get", n, s.get(ctx, "key").Value)
		keep("scan", n, s.only(ctx, "key").Value)
		keep("watch", n, c.events[n].Value)
		if n > 0 {
			keep("previous", n-1, result.Previous.Value)
			keep("previous in watch", n-1, c.events[n].Previous.Value)
		}
		if n%5 == 0 {
			s.compact(ctx, at)
		}
	}
	s.fill(ctx)
	for how, want := range wants {
		if string(kept[how]) != want {
			s.t.Errorf("%s: it has changed since", how)
		}
	}
}

// fill writes more than a store keeps in memory before it is written out.
func (s *subject) fill(ctx context.Context) {
	s.t.Helper()
	value := bytes.Repeat([]byte("fill"), 1<<17)
	for n := range 20 {
		s.must(ctx, storage.Create(storage.Key(fmt.Sprintf("fill/%d", n)), value))
	}
}

// nth returns values that are of one size and all different.
func nth(n int) string { return strings.Repeat(fmt.Sprintf("%04d", n), 100) }
