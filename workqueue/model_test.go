package workqueue_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/even-keel/evenkeel/workqueue"
)

var modelSeed = flag.Uint64("model.seed", 0, "seed of TestModel; 0 picks one")

// modelOps is how many operations TestModel does on all queues together.
const modelOps = 1_000_000

// TestModel does random operations on a queue and on a naive model, which must
// agree on every answer.
func TestModel(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	backoff := func(n int) time.Duration { return time.Duration(n) * 3 * time.Millisecond }
	queues := map[string]workqueue.Options[string]{
		"plain":    {Rate: -1, Backoff: backoff, Patience: 1 << 30},
		"patience": {Rate: -1, Backoff: backoff, Patience: 2, MaxRetries: 2, MaxCauses: 2},
		"groups":   {Rate: -1, Backoff: backoff, Patience: 3, MaxRetries: 3, MaxCauses: 3, Group: groupOf},
		"debounce": {Rate: -1, Backoff: backoff, Patience: 3, MaxCauses: 1, Group: groupOf,
			Debounce: 2 * time.Millisecond, DebounceMax: 5 * time.Millisecond},
	}
	for name, opts := range queues {
		t.Run(name, func(t *testing.T) {
			t.Logf("-model.seed=%d", seed)
			synctest.Test(t, func(t *testing.T) {
				c := newChecker(t, opts, rand.New(rand.NewPCG(seed, 0)))
				for range modelOps / len(queues) {
					c.step()
				}
				c.shutDown()
			})
		})
	}
}

func groupOf(key string) string { return key[:1] }

// checker does each operation twice.
type checker struct {
	t     *testing.T
	rand  *rand.Rand
	queue *workqueue.Queue[string]
	model *model
	items []workqueue.Item[string] // those that run, in the order they began
	done  workqueue.Item[string]   // one that does not any more
	ops   int
}

func newChecker(t *testing.T, opts workqueue.Options[string], r *rand.Rand) *checker {
	return &checker{
		t: t, rand: r, queue: workqueue.New(opts),
		model: &model{opts: opts, start: time.Now(), keys: map[string]*modelKey{}, rings: map[int][]string{}},
	}
}

// key picks one of 40 keys in 4 groups, the first group more often.
func (c *checker) key() string {
	group := "aaabcd"[c.rand.IntN(6)]
	return fmt.Sprintf("%c%d", group, c.rand.IntN(10))
}

func (c *checker) causes() []workqueue.Cause {
	var causes []workqueue.Cause
	for range c.rand.IntN(3) {
		causes = append(causes, workqueue.Cause{
			Reason: workqueue.Event, Kind: "Pod", Object: fmt.Sprint(c.rand.IntN(3)),
			Old: fmt.Sprint(c.ops), New: fmt.Sprint(c.ops + 1), Writer: c.key(),
		})
	}
	return causes
}

func (c *checker) step() {
	c.ops++
	switch n := c.rand.IntN(100); {
	case n < 30:
		key, causes := c.key(), c.causes()
		c.queue.Add(key, causes...)
		c.model.add(key, workqueue.AddOptions{Causes: causes})
	case n < 40:
		c.addWith()
	case n < 60:
		c.get()
	case n < 75:
		c.doneOne()
	case n < 80:
		c.queue.Done(c.done) // a second time: nothing happens
	case n < 86:
		c.retry()
	case n < 90:
		key := c.key()
		c.queue.Forget(key)
		c.model.forget(key)
	case n < 93:
		key := c.key()
		equal(c, "NumRequeues "+key, c.queue.NumRequeues(key), c.model.key(key).retries)
	case n < 97:
		time.Sleep(time.Duration(c.rand.IntN(3000)) * time.Microsecond)
		synctest.Wait()
		c.model.wake()
	default:
		c.stats()
	}
	equal(c, "Len", c.queue.Len(), len(c.model.ready))
}

func equal[T comparable](c *checker, what string, got, want T) {
	c.t.Helper()
	if got != want {
		c.t.Fatalf("operation %d: %s = %v, want %v", c.ops, what, got, want)
	}
}

func (c *checker) addWith() {
	add := workqueue.AddOptions{Priority: c.rand.IntN(4) - 1, Causes: c.causes()}
	if c.rand.IntN(2) == 0 {
		add.After = time.Duration(c.rand.IntN(10)) * time.Millisecond
	}
	key := c.key()
	c.queue.AddWith(key, add)
	c.model.addWith(key, add)
}

func (c *checker) get() {
	if len(c.model.ready) == 0 {
		return
	}
	got, ok := c.queue.Get(context.Background())
	want := c.model.get()
	equal(c, "Get", ok, true)
	equal(c, "Key", got.Key, want.name)
	equal(c, "Priority of "+got.Key, got.Priority, want.ran)
	equal(c, "Retries of "+got.Key, got.Retries, want.retries)
	equal(c, "Waited of "+got.Key, got.Waited, time.Since(want.queued))
	equal(c, "LostCauses of "+got.Key, got.LostCauses, want.lost)
	equal(c, "Causes of "+got.Key, fmt.Sprint(got.Causes), fmt.Sprint(want.causes))
	want.causes, want.lost = nil, 0
	c.items = append(c.items, got)
}

func (c *checker) doneOne() {
	if len(c.items) == 0 {
		return
	}
	i := c.rand.IntN(len(c.items))
	c.done = c.items[i]
	c.items = slices.Delete(c.items, i, i+1)
	c.queue.Done(c.done)
	c.model.done(c.done.Key)
}

func (c *checker) retry() {
	key := c.key()
	if len(c.items) > 0 {
		key = c.items[0].Key
	}
	got, want := c.queue.Retry(key), c.model.retry(key)
	if !errors.Is(got, want) {
		c.t.Fatalf("operation %d: Retry %s = %v, want %v", c.ops, key, got, want)
	}
}

func (c *checker) stats() {
	s, m := c.queue.Stats(), c.model
	equal(c, "Ready", s.Ready, len(m.ready))
	equal(c, "Running", s.Running, len(m.running))
	equal(c, "Delayed", s.Delayed, len(m.having(func(k *modelKey) bool { return k.pending == "held" })))
	equal(c, "Depth", s.Depth, len(m.having(func(k *modelKey) bool { return k.pending == "ready" })))
	equal(c, "Adds", s.Adds, m.adds)
	equal(c, "Retries", s.Retries, m.retries)
	equal(c, "Dropped", s.Dropped, m.dropped)
	equal(c, "LostCauses", s.LostCauses, m.lost)
	equal(c, "QueueTime", s.QueueTime.Sum, m.queueTime)
	equal(c, "WorkTime", s.WorkTime.Sum, m.workTime)
	var unfinished, longest time.Duration
	for _, k := range m.running {
		unfinished += time.Since(k.started)
		longest = max(longest, time.Since(k.started))
	}
	equal(c, "Unfinished", s.Unfinished, unfinished)
	equal(c, "LongestRunning", s.LongestRunning, longest)
	if len(m.ready) > 0 {
		equal(c, "OldestReady", s.OldestReady, time.Since(m.ready[0].queued))
	}
	if c.ops%10 == 0 {
		c.snapshot()
	}
}

func (c *checker) snapshot() {
	var got, want []string
	for i, s := range c.queue.Snapshot(1000) {
		if i < len(c.model.running) {
			equal(c, "Snapshot by age", s.Key, c.model.running[i].name)
		}
		got = append(got, fmt.Sprint(s.Key, s.Running, s.Ready, !s.Due.IsZero(), s.Causes, s.LostCauses, s.Retries))
	}
	for _, k := range c.model.having(func(k *modelKey) bool { return k.running || k.pending != "" }) {
		want = append(want, fmt.Sprint(k.name, k.running, k.pending == "ready", k.pending == "held", k.causes, k.lost, k.retries))
	}
	slices.Sort(got)
	slices.Sort(want)
	equal(c, "Snapshot", fmt.Sprint(got), fmt.Sprint(want))
}

// shutDown checks that what is ready comes out, and what is delayed does not.
func (c *checker) shutDown() {
	c.queue.ShutDown()
	for len(c.model.ready)+len(c.items) > 0 {
		for len(c.model.ready) > 0 {
			c.get()
		}
		c.doneOne()
	}
	if item, ok := c.queue.Get(context.Background()); ok {
		c.t.Fatalf("Get after shutdown = %v", item)
	}
}

// model is a queue by the letter of the documentation: slow and plain.
type model struct {
	opts    workqueue.Options[string]
	start   time.Time
	keys    map[string]*modelKey
	ready   []*modelKey      // not those that run; the oldest first
	running []*modelKey      // in the order they began
	rings   map[int][]string // by priority, groups in the order of their turns
	passed  int
	seq     int

	adds, retries, dropped, lost uint64
	queueTime, workTime          time.Duration
}

type modelKey struct {
	name                     string
	pending                  string // "", "held" or "ready"
	running                  bool
	priority, ran            int
	place                    int // among its priority and group
	held                     int // when it was held, among those held
	until, quiet, quietLimit time.Time
	queued, started          time.Time
	causes                   []workqueue.Cause
	lost, retries            int
}

func (m *model) key(name string) *modelKey {
	if m.keys[name] == nil {
		m.keys[name] = &modelKey{name: name}
	}
	return m.keys[name]
}

func (m *model) having(is func(*modelKey) bool) []*modelKey {
	var all []*modelKey
	for _, k := range m.keys {
		if is(k) {
			all = append(all, k)
		}
	}
	return all
}

func (m *model) addWith(name string, add workqueue.AddOptions) {
	if add.After > 0 {
		m.retries++
	}
	m.add(name, add)
}

func (m *model) add(name string, add workqueue.AddOptions) {
	k := m.key(name)
	for _, c := range add.Causes {
		m.note(k, c)
	}
	m.prioritize(k, add.Priority)
	switch {
	case k.pending == "ready":
	case add.After > 0:
		m.hold(k)
		if at := time.Now().Add(add.After); k.until.IsZero() || at.Before(k.until) {
			k.until = at
		}
	case m.opts.Debounce > 0:
		m.hold(k)
		if k.quiet.IsZero() {
			k.quietLimit = time.Now().Add(m.opts.DebounceMax)
		}
		k.quiet = time.Now().Add(m.opts.Debounce)
		if k.quiet.After(k.quietLimit) {
			k.quiet = k.quietLimit
		}
	default:
		m.makeReady(k, time.Now())
	}
}

func (m *model) note(k *modelKey, c workqueue.Cause) {
	for i, old := range k.causes {
		if old.Reason == c.Reason && old.Kind == c.Kind && old.Object == c.Object {
			c.Old, c.Count = old.Old, old.Count+1
			k.causes[i] = c
			return
		}
	}
	if limit := cmp.Or(m.opts.MaxCauses, workqueue.DefaultMaxCauses); len(k.causes) == limit {
		k.lost++
		m.lost++
		return
	}
	c.Count = 1
	k.causes = append(k.causes, c)
}

func (m *model) prioritize(k *modelKey, priority int) {
	if k.pending != "" && priority <= k.priority {
		return
	}
	if k.pending == "ready" && !k.running {
		m.leave(k)
		k.priority = priority
		m.join(k)
	}
	k.priority = priority
}

func (m *model) hold(k *modelKey) {
	if k.pending == "" {
		m.seq++
		k.pending, k.held = "held", m.seq
		k.until, k.quiet = time.Time{}, time.Time{}
	}
}

func (m *model) makeReady(k *modelKey, now time.Time) {
	k.pending, k.queued = "ready", now
	m.adds++
	if !k.running {
		m.ready = append(m.ready, k)
		m.join(k)
	}
}

func (m *model) group(k *modelKey) string {
	if m.opts.Group == nil {
		return ""
	}
	return m.opts.Group(k.name)
}

func (m *model) join(k *modelKey) {
	m.seq++
	k.place = m.seq
	if !slices.Contains(m.rings[k.priority], m.group(k)) {
		m.rings[k.priority] = append(m.rings[k.priority], m.group(k))
	}
}

// peers are the ready keys of a key's priority and group, in their order.
func (m *model) peers(priority int, group string) []*modelKey {
	var peers []*modelKey
	for _, k := range m.ready {
		if k.priority == priority && m.group(k) == group {
			peers = append(peers, k)
		}
	}
	slices.SortFunc(peers, func(a, b *modelKey) int { return a.place - b.place })
	return peers
}

func (m *model) leave(k *modelKey) {
	if peers := m.peers(k.priority, m.group(k)); len(peers) == 1 {
		i := slices.Index(m.rings[k.priority], m.group(k))
		m.rings[k.priority] = slices.Delete(m.rings[k.priority], i, i+1)
	}
}

func (m *model) get() *modelKey {
	k := m.choose()
	if k == m.ready[0] {
		m.passed = 0
	} else {
		m.passed++
	}
	m.leave(k)
	m.ready = slices.DeleteFunc(m.ready, func(r *modelKey) bool { return r == k })
	m.running = append(m.running, k)
	k.pending, k.running, k.ran, k.started = "", true, k.priority, time.Now()
	m.queueTime += time.Since(k.queued)
	return k
}

func (m *model) choose() *modelKey {
	if m.passed >= m.opts.Patience {
		return m.ready[0]
	}
	top := m.ready[0].priority
	for _, k := range m.ready {
		top = max(top, k.priority)
	}
	ring := m.rings[top]
	m.rings[top] = append(ring[1:], ring[0])
	return m.peers(top, ring[0])[0]
}

func (m *model) done(name string) {
	k := m.key(name)
	m.workTime += time.Since(k.started)
	m.running = slices.DeleteFunc(m.running, func(r *modelKey) bool { return r == k })
	k.running, k.ran = false, 0
	if k.pending == "ready" {
		m.ready = append(m.ready, k)
		m.join(k)
	}
}

func (m *model) retry(name string) error {
	k := m.key(name)
	if m.opts.MaxRetries > 0 && k.retries == m.opts.MaxRetries {
		k.retries = 0
		m.dropped++
		return workqueue.ErrRetryLimit
	}
	k.retries++
	m.retries++
	m.add(name, workqueue.AddOptions{
		After: m.opts.Backoff(k.retries), Priority: k.ran, Causes: []workqueue.Cause{{Reason: workqueue.Retry}},
	})
	return nil
}

func (m *model) forget(name string) { m.key(name).retries = 0 }

func (k *modelKey) due() time.Time {
	if k.until.IsZero() || !k.quiet.IsZero() && k.quiet.Before(k.until) {
		return k.quiet
	}
	return k.until
}

// wake makes ready what has become due.
func (m *model) wake() {
	due := m.having(func(k *modelKey) bool { return k.pending == "held" && !k.due().After(time.Now()) })
	slices.SortFunc(due, func(a, b *modelKey) int {
		return cmp.Or(a.due().Compare(b.due()), a.held-b.held)
	})
	for _, k := range due {
		m.makeReady(k, k.due())
	}
}
