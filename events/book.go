package events

import (
	"container/heap"
	"container/list"
	"time"

	eventsv1 "k8s.io/api/events/v1"
)

// book holds all series, and decides what is written when. It starts no goroutine
// and does no I/O: [Recorder] guards it, and carries out what it says.
//
// What is recorded is told to the server, pending or dropped, and never two of
// them: Recorded = Told + Pending + Dropped. Everything pending belongs to a
// series, of which there are Options.MaxSeries at most, and a series has one write
// under way at most; so nothing grows with the number of events.
type book struct {
	options  *Options
	series   map[seriesKey]*series
	subjects map[subjectKey]*subject
	settled  list.List // of *series of which all is told, the longest silent first
	idle     list.List // of *subject without series, the longest idle first
	waiting  dueHeap
	writing  int
	closing  bool // everything is due
	closed   bool
	stats    Stats
}

func newBook(o *Options) *book {
	return &book{options: o, series: map[seriesKey]*series{}, subjects: map[subjectKey]*subject{}}
}

// fate is what became of an event that was recorded.
type fate int

const (
	kept fate = iota
	spam
	full
	late
)

// record takes an event.
func (b *book) record(o occurrence) fate {
	b.stats.Recorded++
	if b.closed {
		b.stats.Dropped.Stopped++
		return late
	}
	b.forget(o.at)
	key := keyOf(o)
	if s := b.series[key]; s != nil {
		b.repeat(s, o.at)
		return kept
	}
	sub := b.subject(o.subject)
	if sub.isNew(b.options, o.at) {
		key = seriesKey{subjectKey: o.subject, combined: true}
		b.stats.Combined++
		if s := b.series[key]; s != nil {
			b.repeat(s, o.at)
			return kept
		}
	}
	return b.begin(key, sub, o)
}

// repeat counts an event as part of a series.
func (b *book) repeat(s *series, at time.Time) {
	b.stats.Counted++
	s.count++
	s.last = at
	b.unsettle(s)
	b.await(s)
}

// begin makes a series, if there is room and it is not too much.
func (b *book) begin(key seriesKey, sub *subject, o occurrence) fate {
	b.hold(sub)
	switch {
	case !b.room():
		b.stats.Dropped.Full++
		b.release(sub)
		return full
	case !sub.bucket.take(b.options, o.at):
		b.stats.Dropped.Spam++
		b.release(sub)
		return spam
	}
	s := &series{key: key, subject: sub, event: b.options.newEvent(o, key.combined), count: 1, last: o.at, due: o.at, index: -1}
	b.series[key] = s
	b.await(s)
	return kept
}

// subject returns what is known of similar events. One without series is idle.
func (b *book) subject(key subjectKey) *subject {
	sub := b.subjects[key]
	if sub == nil {
		sub = &subject{key: key}
		b.subjects[key] = sub
		b.rest(sub)
	}
	return sub
}

// hold and release say that a subject has one series more or less.
func (b *book) hold(sub *subject) {
	if sub.series++; sub.idle != nil {
		b.idle.Remove(sub.idle)
		sub.idle = nil
	}
}

func (b *book) release(sub *subject) {
	if sub.series--; sub.series == 0 {
		b.rest(sub)
	}
}

// rest puts a subject among the idle, of which the oldest is forgotten.
func (b *book) rest(sub *subject) {
	sub.idle = b.idle.PushBack(sub)
	if b.idle.Len() > b.options.MaxSeries {
		oldest := b.idle.Remove(b.idle.Front()).(*subject)
		delete(b.subjects, oldest.key)
	}
}

// await has what is not told of a series written when it is due.
func (b *book) await(s *series) {
	if s.writing || s.index >= 0 || s.count == s.told {
		return
	}
	if b.closing && s.tries == 0 {
		s.due = s.last
	}
	heap.Push(&b.waiting, s)
}

// drain makes everything due that has not failed just now.
func (b *book) drain() {
	b.closing = true
	for _, s := range b.waiting {
		if s.tries == 0 {
			s.due = s.last
		}
	}
	heap.Init(&b.waiting)
}

// settle puts a series among those of which all is told. Most have been silent for
// less long than all others there.
func (b *book) settle(s *series) {
	at := b.settled.Back()
	for at != nil && at.Value.(*series).last.After(s.last) {
		at = at.Prev()
	}
	if at == nil {
		s.place = b.settled.PushFront(s)
	} else {
		s.place = b.settled.InsertAfter(s, at)
	}
}

func (b *book) unsettle(s *series) {
	if s.place != nil {
		b.settled.Remove(s.place)
		s.place = nil
	}
}

// forget ends the series that have been silent for long enough.
func (b *book) forget(now time.Time) {
	for {
		e := b.settled.Front()
		if e == nil || now.Sub(e.Value.(*series).last) <= b.options.SeriesFor {
			return
		}
		b.remove(e.Value.(*series))
	}
}

// room makes room for a series, at the cost of one of which all is told.
func (b *book) room() bool {
	if len(b.series) < b.options.MaxSeries {
		return true
	}
	if e := b.settled.Front(); e != nil {
		b.remove(e.Value.(*series))
		return true
	}
	return false
}

func (b *book) remove(s *series) {
	delete(b.series, s.key)
	b.unsettle(s)
	if s.index >= 0 {
		heap.Remove(&b.waiting, s.index)
	}
	b.release(s.subject)
}

// write is what is to be told to the server.
type write struct {
	series *series
	event  *eventsv1.Event
	create bool
	count  int32
	last   time.Time
}

// forever is a wait that ends with news.
const forever = time.Hour

// next returns what to write now, or how long there is nothing.
func (b *book) next(now time.Time) (*write, time.Duration) {
	for b.writing < b.options.Writers && len(b.waiting) > 0 {
		s := b.waiting[0]
		if wait := s.due.Sub(now); wait > 0 {
			return nil, wait
		}
		if s.told > 0 && s.tries == 0 && !b.closing && !s.subject.bucket.take(b.options, now) {
			s.due = now.Add(s.subject.bucket.wait(b.options))
			heap.Fix(&b.waiting, 0)
			continue
		}
		heap.Pop(&b.waiting)
		s.writing = true
		b.writing++
		return &write{series: s, event: s.event, create: s.told == 0, count: s.count, last: s.last}, 0
	}
	return nil, forever
}

// done takes what became of a write.
func (b *book) done(w *write, v verdict, now time.Time) {
	s := w.series
	b.writing--
	s.writing = false
	switch v {
	case created, updated:
		b.told(s, w, v, now)
	case failed:
		s.tries++
		s.due = now.Add(s.backoff())
		if s.tries >= maxTries {
			b.drop(s, &b.stats.Dropped.Unreachable)
			return
		}
	case refused:
		b.drop(s, &b.stats.Dropped.Refused)
		return
	}
	b.await(s)
}

func (b *book) told(s *series, w *write, v verdict, now time.Time) {
	b.stats.Told += uint64(w.count - s.told)
	if v == created {
		b.stats.Created++
	} else {
		b.stats.Updated++
	}
	s.told, s.tries = w.count, 0
	s.writes++
	s.due = now.Add(s.pause(b.options.Refill))
	if s.count == s.told {
		b.settle(s)
	}
}

// drop forgets a series with what is not told of it.
func (b *book) drop(s *series, counter *uint64) {
	*counter += uint64(s.count - s.told)
	b.remove(s)
}

// close drops all that is pending, and takes no more.
func (b *book) close() {
	b.closed = true
	for len(b.waiting) > 0 {
		b.drop(b.waiting[0], &b.stats.Dropped.Stopped)
	}
}

// idleNow reports whether nothing is pending and nothing under way.
func (b *book) idleNow() bool { return b.writing == 0 && len(b.waiting) == 0 }

func (b *book) figures() Stats {
	s := b.stats
	s.Pending = s.Recorded - s.Told - s.Dropped.Total()
	s.Series = len(b.series)
	return s
}

// dueHeap is a heap of series by when they are due.
type dueHeap []*series

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *dueHeap) Push(x any) {
	s := x.(*series)
	s.index = len(*h)
	*h = append(*h, s)
}

func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	s.index = -1
	return s
}
