package informer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// The model test drives the middle of an informer (parts, store, handlers) with
// random events and no goroutine. Handlers take what is pending at random times.
// Each checks that what it is told is a legal history, and in the end that it
// knows what the store has. The naive model of the store is a map per part.

type cm = *corev1.ConfigMap

// modelRun is how many operations an informer is used for: then another begins.
const modelRun = 500

// world is the server as the parts see it: all objects, at revisions.
type world struct {
	random   *rand.Rand
	revision int
	uids     int
	objects  map[client.Key]cm
	// ends are the deletions that a watch was told of.
	ends map[string]bool
}

func (w *world) next() string {
	w.revision++
	return strconv.Itoa(w.revision)
}

// write changes a random object, and returns what it was and what it is.
func (w *world) write() (old, now cm) {
	key := client.Key{Namespace: "ns", Name: fmt.Sprint("m", w.random.IntN(12))}
	old = w.objects[key]
	switch {
	case old != nil && w.random.IntN(3) == 0:
		delete(w.objects, key)
		w.next()
		return old, nil
	case old == nil:
		w.uids++
		now = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(fmt.Sprint("u", w.uids))}}
	default:
		now = old.DeepCopy()
	}
	now.ResourceVersion = w.next()
	now.Labels = map[string]string{"a": strconv.Itoa(w.random.IntN(2)), "b": strconv.Itoa(w.random.IntN(2))}
	w.objects[key] = now
	return old, now
}

// listener is a handler that checks its history.
type listener struct {
	t     *testing.T
	w     *world
	name  string
	h     *handler[cm]
	knows map[client.Key]cm
	gone  map[types.UID]cache.Revision // when what it knew was deleted
	fits  func(cm) bool
}

func (l *listener) hear(batch []Delta[cm]) {
	for _, d := range batch {
		l.check(d)
		if d.Type == Deleted {
			delete(l.knows, d.Key)
			l.gone[d.Object().UID] = d.Revision()
		} else {
			l.knows[d.Key] = d.Object()
		}
	}
}

func (l *listener) check(d Delta[cm]) {
	known := l.knows[d.Key]
	complain := func(what string) {
		l.t.Helper()
		l.t.Fatalf("%s: %s %s at %s: %s (it knows %v)", l.name, d.Type, d.Key.Name, d.Revision(), what, known)
	}
	switch {
	case d.Type == Added && known != nil:
		complain("an object that it knows")
	case d.Type != Added && known == nil:
		complain("an object that it does not know")
	case d.Type != Added && d.OldRevision() != "" && string(d.OldRevision()) != known.ResourceVersion:
		complain("from a state that it was not told of: " + string(d.OldRevision()))
	case d.Type != Added && !d.Revision().Includes(cache.Revision(known.ResourceVersion)):
		complain("a state older than one that it was told of")
	case d.Type == Added && !d.Revision().Includes(l.gone[d.Object().UID]):
		complain("a state older than its end")
	case d.Object().UID != uidOf(known, d.Object()):
		complain("another object of the same name")
	case d.Type != Deleted && !l.fits(d.Object()):
		complain("an object that the filter hides")
	case d.Type == Deleted && !d.Unknown && l.name != "filtered" && !l.w.ends[endOf(d.Object())]:
		complain("a last state that was not")
	case d.Type == Sync && d.Revision() != d.OldRevision():
		complain("a repetition of something new")
	}
}

func endOf(last cm) string { return string(last.UID) + "@" + last.ResourceVersion }

func uidOf(known, now cm) types.UID {
	if known != nil {
		return known.UID
	}
	return now.UID
}

// step hands over some of what is pending, as the handler's goroutine would.
func (l *listener) step() bool { return l.h.turn() }

func newListener(t *testing.T, w *world, in *Informer[cm], name string, o HandlerOptions[cm]) *listener {
	l := &listener{t: t, w: w, name: name, knows: map[client.Key]cm{}, gone: map[types.UID]cache.Revision{}, fits: func(cm) bool { return true }}
	if o.Filter != nil {
		l.fits = o.Filter
	}
	l.h = newHandler(in, o, l.hear)
	in.of.join(l.h)
	return l
}

// TestHandlersSeeLegalHistories does a million operations, half of them on an
// informer of one selection and half on one of two. EVENKEEL_OPS is another number,
// EVENKEEL_SEED the seed of the first run.
func TestHandlersSeeLegalHistories(t *testing.T) {
	ops, first := 1_000_000, rand.Uint64N(1<<40)
	if v := os.Getenv("EVENKEEL_SEED"); v != "" {
		first, _ = strconv.ParseUint(v, 10, 64)
	}
	if v := os.Getenv("EVENKEEL_OPS"); v != "" {
		ops, _ = strconv.Atoi(v)
	}
	for _, parts := range []int{1, 2} {
		t.Run(fmt.Sprint("parts=", parts), func(t *testing.T) {
			seed := first
			defer func() {
				if t.Failed() {
					t.Logf("EVENKEEL_SEED=%d", seed)
				}
			}()
			for range ops / 2 / modelRun {
				runModel(t, rand.New(rand.NewPCG(seed, 1)), parts, modelRun)
				seed++
			}
		})
	}
}

// follower is a part of the model: what it selects, and how far it has read.
type follower struct {
	part    *part[cm]
	selects func(cm) bool
	log     []event[cm]
	// broken says that a list did not come to its end: there has to be another.
	broken bool
}

func runModel(t *testing.T, random *rand.Rand, parts, ops int) {
	conn, err := client.Connect(&rest.Config{Host: "http://nowhere.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	set := NewSet(conn, Config{})
	selections := []Selection{{Labels: "a=1"}, {Labels: "b=1"}}
	in := For[cm](set, Select(selections[:parts]...))
	w := &world{random: random, revision: 1, objects: map[client.Key]cm{}, ends: map[string]bool{}}
	label := []string{"a", "b"}
	var all []*follower
	for i, p := range in.of.parts {
		all = append(all, &follower{part: p, selects: func(o cm) bool { return o.Labels[label[i]] == "1" }})
	}
	listeners := []*listener{
		newListener(t, w, in, "one by one", HandlerOptions[cm]{AtMost: 1}),
		newListener(t, w, in, "batches", HandlerOptions[cm]{}),
		newListener(t, w, in, "slow", HandlerOptions[cm]{AtMost: 2}),
		newListener(t, w, in, "prompt", HandlerOptions[cm]{AtMost: 1, Prompt: true}),
		newListener(t, w, in, "filtered", HandlerOptions[cm]{AtMost: 1, Filter: func(o cm) bool { return o.Labels["b"] == "0" }}),
	}
	for range ops {
		switch n := random.IntN(20); {
		case n < 9:
			old, now := w.write()
			for _, f := range all {
				f.note(w, old, now)
			}
		case n < 13:
			all[random.IntN(len(all))].read(in.of, random)
		case n == 13:
			all[random.IntN(len(all))].relist(in.of, w)
		case n == 14:
			in.of.resync(listeners[random.IntN(len(listeners))].h)
		case n == 15 && len(listeners) < 8:
			listeners = append(listeners, newListener(t, w, in, "late", HandlerOptions[cm]{AtMost: 1}))
		case n == 16:
			listeners[2].step()
		default:
			l := listeners[random.IntN(len(listeners))]
			if l.name != "slow" {
				l.step()
			}
		}
		checkRevision(t, in, all)
		for _, l := range listeners {
			if n := l.h.Pending(); n > 24 {
				t.Fatalf("%s: %d keys are pending, of 12", l.name, n)
			}
		}
	}
	checkEnd(t, in, w, all, listeners)
}

// note is what a watch with the follower's selector would be sent.
func (f *follower) note(w *world, old, now cm) {
	was := old != nil && f.selects(old)
	is := now != nil && f.selects(now)
	switch {
	case is:
		f.log = append(f.log, event[cm]{key: client.KeyOf(now), obj: now.DeepCopy()})
	case was:
		last := old.DeepCopy()
		last.ResourceVersion = strconv.Itoa(w.revision)
		w.ends[endOf(last)] = true
		f.log = append(f.log, event[cm]{key: client.KeyOf(old), obj: last, deleted: true})
	}
}

// read applies some of the events that were sent.
func (f *follower) read(s *shared[cm], random *rand.Rand) {
	n := random.IntN(len(f.log) + 1)
	if n == 0 || f.broken || !f.part.synced() {
		return
	}
	events := f.log[:n]
	f.log = f.log[n:]
	s.apply(f.part, write[cm]{events: events, revision: events[n-1].obj.ResourceVersion})
}

// relist replaces the part's state by what there is, in pieces.
func (f *follower) relist(s *shared[cm], w *world) {
	r := s.replace(f.part)
	if w.random.IntN(3) == 0 {
		r.most = 3 // so that some of it is visible before the end
	}
	var events []event[cm]
	keys := slices.SortedFunc(maps.Keys(w.objects), func(a, b client.Key) int { return strings.Compare(a.Name, b.Name) })
	w.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys {
		if o := w.objects[key]; f.selects(o) {
			events = append(events, event[cm]{key: key, obj: o.DeepCopy()})
		}
	}
	for piece := range slices.Chunk(events, 4) {
		r.add(piece)
		if w.random.IntN(20) == 0 {
			f.broken = true
			return
		}
	}
	r.finish(strconv.Itoa(w.revision))
	f.log, f.broken = nil, false
}

// checkRevision: the store must not claim to be newer than a part of it is.
func checkRevision(t *testing.T, in *Informer[cm], all []*follower) {
	t.Helper()
	for _, f := range all {
		if r := in.Snapshot().Revision(); r != "" && !f.part.revision.Includes(r) {
			t.Fatalf("the store is complete up to %s, and %s up to %s", r, f.part.selection, f.part.revision)
		}
	}
}

// TestWhatNobodySawIsNotKept: a handler that does not take what is pending costs
// no memory for objects that came and went meanwhile.
func TestWhatNobodySawIsNotKept(t *testing.T) {
	conn, err := client.Connect(&rest.Config{Host: "http://nowhere.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	in := For[cm](NewSet(conn, Config{}))
	s, p := in.of, in.of.parts[0]
	s.replace(p).finish("1")
	h := newHandler(in, HandlerOptions[cm]{}, func([]Delta[cm]) {})
	s.join(h)
	for i := range 100 {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i), UID: types.UID(fmt.Sprint(i)), ResourceVersion: strconv.Itoa(i + 2)}}
		e := event[cm]{key: client.KeyOf(m), obj: m}
		s.apply(p, write[cm]{events: []event[cm]{e}, revision: m.ResourceVersion})
		e.deleted = true
		s.apply(p, write[cm]{events: []event[cm]{e}, revision: m.ResourceVersion})
	}
	if n := h.Pending(); n != 0 {
		t.Errorf("%d keys are pending", n)
	}
}

func checkEnd(t *testing.T, in *Informer[cm], w *world, all []*follower, listeners []*listener) {
	t.Helper()
	for _, f := range all {
		for f.broken || !f.part.synced() {
			f.relist(in.of, w)
		}
		for len(f.log) > 0 {
			f.read(in.of, w.random)
		}
	}
	want := map[client.Key]string{}
	for key, o := range w.objects {
		if slices.ContainsFunc(all, func(f *follower) bool { return f.selects(o) }) {
			want[key] = o.ResourceVersion
		}
	}
	got := map[client.Key]string{}
	for o := range in.List() {
		got[client.KeyOf(o)] = o.ResourceVersion
	}
	if !maps.Equal(got, want) {
		t.Fatalf("the store has\n%v\nand the server\n%v", got, want)
	}
	for _, l := range listeners {
		for l.step() {
		}
		knows := map[client.Key]string{}
		for key, o := range l.knows {
			knows[key] = o.ResourceVersion
		}
		maps.DeleteFunc(got, func(key client.Key, _ string) bool { return !l.fits(w.objects[key]) })
		if l.name != "filtered" && !maps.Equal(knows, want) {
			t.Fatalf("%s knows\n%v\nand the server\n%v", l.name, knows, want)
		}
		if l.name == "filtered" && !maps.Equal(knows, got) {
			t.Fatalf("%s knows\n%v\nof\n%v", l.name, knows, want)
		}
		if n := l.h.Pending(); n != 0 {
			t.Fatalf("%s: %d are pending after the end", l.name, n)
		}
		if !l.h.HasSynced() {
			t.Fatalf("%s is not synced", l.name)
		}
	}
}

func named(name, revision string) event[cm] {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: revision}}
	return event[cm]{key: client.KeyOf(m), obj: m}
}

// TestAReplaceIsAtomic: readers see the old state or the new one, and objects that
// did not change stay the same in memory.
func TestAReplaceIsAtomic(t *testing.T) {
	conn, err := client.Connect(&rest.Config{Host: "http://nowhere.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	in := For[cm](NewSet(conn, Config{}))
	s, p := in.of, in.of.parts[0]
	first := s.replace(p)
	first.add([]event[cm]{named("a", "1"), named("b", "2"), named("c", "3")})
	first.finish("3")
	kept, _ := in.Get("", "a")

	show := func() (out string) {
		for m := range in.List() {
			out += m.Name + m.ResourceVersion + " "
		}
		return out + "at " + string(in.Snapshot().Revision())
	}
	second := s.replace(p)
	second.add([]event[cm]{named("a", "1")})
	second.add([]event[cm]{named("b", "5"), named("d", "6")})
	if got := show(); got != "a1 b2 c3 at 3" {
		t.Errorf("in the middle there is %s", got)
	}
	second.finish("7")
	if got := show(); got != "a1 b5 d6 at 7" {
		t.Errorf("at the end there is %s", got)
	}
	if now, _ := in.Get("", "a"); now != kept {
		t.Error("an object that did not change is another one in memory")
	}
}
