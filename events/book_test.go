package events

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestTheBookAddsUp does what comes by chance to a book, and looks after each step
// whether it keeps its promises.
func TestTheBookAddsUp(t *testing.T) {
	seed := rand.Uint64N(1 << 40)
	if v := os.Getenv("EVENKEEL_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	for i := range uint64(50) {
		t.Run(fmt.Sprintf("EVENKEEL_SEED=%d", seed+i), func(t *testing.T) { playBook(t, rand.New(rand.NewPCG(seed+i, 1))) })
	}
}

func playBook(t *testing.T, random *rand.Rand) {
	o := Options{Component: "foo", MaxSeries: 1 + random.IntN(20), Similar: 1 + random.IntN(5), Burst: 1 + random.IntN(10), Writers: 1 + random.IntN(3)}.withDefaults()
	b := newBook(&o)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var open []*write
	server := map[*series]int32{} // what it has heard of each
	for step := range 2000 {
		now = now.Add(time.Duration(random.Int64N(int64(20 * time.Second))))
		switch random.IntN(4) {
		case 0, 1:
			b.record(chance(random, now))
		case 2:
			if w, wait := b.next(now); w != nil {
				if w.count <= server[w.series] || w.create != (server[w.series] == 0) {
					t.Fatalf("step %d: a write of %d, create %v, after %d", step, w.count, w.create, server[w.series])
				}
				open = append(open, w)
			} else if wait <= 0 {
				t.Fatalf("step %d: there is nothing to do for %s", step, wait)
			}
		case 3:
			if len(open) > 0 {
				i := random.IntN(len(open))
				w, v := open[i], verdict(random.IntN(4))
				open = append(open[:i], open[i+1:]...)
				if v == created || v == updated {
					server[w.series] = w.count
				}
				b.done(w, v, now)
			}
		}
		b.mustAddUp(t, step, len(open))
	}
	b.drain()
	for _, w := range open {
		server[w.series] = w.count
		b.done(w, updated, now)
	}
	for {
		now = now.Add(maxWait)
		w, _ := b.next(now)
		if w == nil {
			break
		}
		b.done(w, updated, now)
	}
	b.mustAddUp(t, -1, 0)
	if st := b.figures(); st.Pending != 0 || !b.idleNow() {
		t.Errorf("something is left: %+v", st)
	}
}

func chance(random *rand.Rand, now time.Time) occurrence {
	ref := corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: fmt.Sprint("p", random.IntN(10))}
	return occurrence{
		subject:   subjectKey{about: ref, kind: Normal, reason: fmt.Sprint("R", random.IntN(3))},
		regarding: ref, action: "A", note: fmt.Sprint(random.IntN(8)), at: now,
	}
}

func (b *book) mustAddUp(t *testing.T, step, open int) {
	t.Helper()
	var pending uint64
	writing, waiting, settled, used := 0, 0, 0, map[*subject]int{}
	for _, s := range b.series {
		pending += uint64(s.count - s.told)
		used[s.subject]++
		if s.writing {
			writing++
		}
		if s.index >= 0 {
			waiting++
		}
		if s.place != nil {
			settled++
		}
		if (s.place != nil) != (s.count == s.told) || s.place == nil && !s.writing && s.index < 0 {
			t.Fatalf("step %d: a series is forgotten: %+v", step, s)
		}
	}
	st := b.figures()
	if st.Pending != pending || writing != open || writing != b.writing || waiting != len(b.waiting) {
		t.Fatalf("step %d: %d are pending, %d written, %d wait: %+v", step, pending, writing, waiting, st)
	}
	if len(b.series) > b.options.MaxSeries || b.settled.Len() != settled || len(b.subjects) != b.idle.Len()+len(used) || b.idle.Len() > b.options.MaxSeries {
		t.Fatalf("step %d: %d series, %d settled, %d subjects, %d idle, %d used", step, len(b.series), b.settled.Len(), len(b.subjects), b.idle.Len(), len(used))
	}
	for e := b.settled.Front(); e != nil && e.Next() != nil; e = e.Next() {
		if e.Value.(*series).last.After(e.Next().Value.(*series).last) {
			t.Fatalf("step %d: those of which all is told are out of order", step)
		}
	}
	for sub, n := range used {
		if sub.series != n || sub.idle != nil || b.subjects[sub.key] != sub {
			t.Fatalf("step %d: a subject has %d series, not %d", step, n, sub.series)
		}
	}
}

func TestNamesOfEvents(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if a, b := eventName("web", at), eventName("web", at); a == b {
		t.Errorf("two events are called %s", a)
	}
}

func BenchmarkRecord(b *testing.B) {
	o := Options{Component: "foo"}.withDefaults()
	r := &Recorder{options: o, wake: make(chan struct{}, 1)}
	r.book = newBook(&r.options)
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = "web", "default"
	b.ReportAllocs()
	for b.Loop() {
		r.Event(pod, Warning, "Failed", "no volume %q", "data")
	}
}

// Events of ever new objects, of which none can be told.
func BenchmarkRecordWhenFull(b *testing.B) {
	o := Options{Component: "foo"}.withDefaults()
	book := newBook(&o)
	at := time.Now()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ref := corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: fmt.Sprint("web-", i)}
		book.record(occurrence{subject: subjectKey{about: ref, kind: Normal, reason: "Started"}, regarding: ref, action: "A", at: at})
	}
}
