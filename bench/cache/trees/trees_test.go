package cache

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
	"github.com/tidwall/btree"
)

// item is what the trees hold: a pointer to something with a key, as in a cache.
type item struct{ namespace, name string }

func (i *item) compare(o *item) int {
	if c := strings.Compare(i.namespace, o.namespace); c != 0 {
		return c
	}
	return strings.Compare(i.name, o.name)
}

// candidate is a tree that can be copied in constant time. set replaces or adds
// items and publishes a copy, which list reads.
type candidate interface {
	set(items ...*item)
	get(*item) bool
	list() int
}

type own struct{ now tree[*item] }

func (t *own) set(items ...*item) {
	e := newEdit()
	for _, i := range items {
		t.now.set(e, i, i.probe())
	}
}

func (i *item) probe() probe[*item] { return func(o *item) int { return o.compare(i) } }

func (t *own) get(i *item) bool {
	_, ok := t.now.get(i.probe())
	return ok
}

func (t *own) list() (n int) {
	t.now.ascend(nil, func(i *item) bool { n += len(i.name); return true })
	return n
}

type tidwall struct{ now, published *btree.BTreeG[*item] }

func newTidwall() *tidwall {
	return &tidwall{now: btree.NewBTreeGOptions(func(a, b *item) bool { return a.compare(b) < 0 }, btree.Options{NoLocks: true})}
}

func (t *tidwall) set(items ...*item) {
	for _, i := range items {
		t.now.Set(i)
	}
	t.published = t.now.Copy()
}

func (t *tidwall) get(i *item) bool {
	_, ok := t.published.Get(i)
	return ok
}

func (t *tidwall) list() (n int) {
	t.published.Scan(func(i *item) bool { n += len(i.name); return true })
	return n
}

type radix struct{ now *iradix.Tree[*item] }

func (i *item) bytes() []byte { return []byte(i.namespace + "\x00" + i.name) }

func (t *radix) set(items ...*item) {
	txn := t.now.Txn()
	for _, i := range items {
		txn.Insert(i.bytes(), i)
	}
	t.now = txn.Commit()
}

func (t *radix) get(i *item) bool {
	_, ok := t.now.Get(i.bytes())
	return ok
}

func (t *radix) list() (n int) {
	for it := t.now.Root().Iterator(); ; {
		_, i, ok := it.Next()
		if !ok {
			return n
		}
		n += len(i.name)
	}
}

const keys = 50_000

// BenchmarkTrees measures each candidate with the keys of 50,000 pods.
func BenchmarkTrees(b *testing.B) {
	items := make([]*item, keys)
	for i := range items {
		items[i] = &item{fmt.Sprint("team-", i/20%100), fmt.Sprintf("checkout-%04d-%05d-%05d", i/20, i/20*7919%99991, i*104729%99991)}
	}
	rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	for _, c := range []struct {
		name string
		make func() candidate
	}{
		{"own", func() candidate { return &own{} }},
		{"tidwall", func() candidate { return newTidwall() }},
		{"radix", func() candidate { return &radix{iradix.New[*item]()} }},
	} {
		b.Run(c.name, func(b *testing.B) { measure(b, c.make, items) })
	}
}

func measure(b *testing.B, make func() candidate, items []*item) {
	before := liveHeap()
	tree := make()
	for i := 0; i < keys; i += 500 {
		tree.set(items[i : i+500]...)
	}
	heap := float64(liveHeap() - before)
	b.Run("update", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			tree.set(items[i%keys])
		}
		b.ReportMetric(heap/keys, "heap-B/key")
	})
	b.Run("update-500", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i += 500 {
			tree.set(items[i%keys : i%keys+500]...)
		}
	})
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if !tree.get(items[i%keys]) {
				b.Fatal("lost")
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tree.list()
		}
	})
}

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
