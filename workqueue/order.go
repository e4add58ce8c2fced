package workqueue

import "slices"

// order decides which of the ready entries is next.
//
// Goals: what has a higher priority goes first; groups of one priority share
// alike, however much each has waiting; nothing waits for ever.
//
// Entries of one priority are a level; entries of one level and group are a
// flow, first in first out. The next entry is the front of the flow whose turn
// it is in the highest level, and the flow then goes to the end of its level's
// ring. Beside that all entries are in one list by age: when its front has been
// passed over patience times in a row, it is next, whatever its priority. So an
// entry with n older ones is out after at most (patience+1)*(n+1) turns.
//
// Rejected: a priority that grows with the time waited. After an initial list
// of 50,000 keys has waited for long enough, every one of them stands before an
// event of now, and a group's backlog outgrows the turns of others. A share of
// the turns keeps both bounds at any load, needs no clock, and each step takes
// constant time.
//
// While all entries are of one priority and there are no groups, which is most
// of the time for most queues, the list by age is the order, and there are no
// levels: the order is plain. The first entry of another priority ends that
// until the order is empty again.
type order[K comparable] struct {
	grouped  bool
	patience int

	age    list[K]
	plain  bool
	only   int         // the priority of all entries while the order is plain
	passed int         // how often in a row the front of age was passed over
	levels []*level[K] // by priority, the highest last; all but a lone one hold entries

	// What was emptied, to use again.
	spareLevel *level[K]
	spareFlows []*flow[K]
}

// maxSpareFlows bounds the emptied flows that an order keeps.
const maxSpareFlows = 64

// level is the ready entries of one priority.
type level[K comparable] struct {
	priority int
	// last is the last of a ring of flows that hold entries; the turn is that
	// of the one after it.
	last *flow[K]
	// flows are those of the ring by group; unused when there are no groups.
	flows map[string]*flow[K]
}

// flow is the ready entries of one priority and group.
type flow[K comparable] struct {
	entries    list[K]
	level      *level[K]
	prev, next *flow[K]
}

func newOrder[K comparable](grouped bool, patience int) order[K] {
	return order[K]{grouped: grouped, patience: patience, age: list[K]{by: byAge}}
}

func (o *order[K]) len() int { return o.age.n }

func (o *order[K]) push(e *entry[K]) {
	if o.age.n == 0 {
		o.plain, o.only = !o.grouped, e.priority
	}
	if o.plain && e.priority != o.only {
		o.makeLevels()
	}
	o.age.push(e)
	if !o.plain {
		o.enlist(e)
	}
}

// makeLevels ends the time of a plain order. It takes no longer than it took to
// push the entries.
func (o *order[K]) makeLevels() {
	o.plain = false
	for e := o.age.front; e != nil; e = e.age.next {
		o.enlist(e)
	}
}

// raise moves an entry to the end of its group at a new priority; its age stays.
func (o *order[K]) raise(e *entry[K], priority int) {
	if o.plain {
		o.makeLevels()
	}
	o.delist(e)
	e.priority = priority
	o.enlist(e)
}

// pop takes the next entry; there must be one.
func (o *order[K]) pop() *entry[K] {
	e := o.age.front
	if o.plain {
		o.passed = 0
		o.age.remove(e)
		return e
	}
	if o.passed < o.patience {
		e = o.levels[len(o.levels)-1].turn()
	}
	o.passed++
	if e == o.age.front {
		o.passed = 0
	}
	o.age.remove(e)
	o.delist(e)
	return e
}

func (o *order[K]) enlist(e *entry[K]) {
	m := e.extra()
	m.flow = o.flow(o.level(e.priority), m.group)
	m.flow.entries.push(e)
}

func (o *order[K]) delist(e *entry[K]) {
	f := e.more.flow
	e.more.flow = nil
	f.entries.remove(e)
	if f.entries.n == 0 {
		o.dropFlow(f, e.more.group)
	}
}

// level finds or makes the level of a priority.
func (o *order[K]) level(priority int) *level[K] {
	i := len(o.levels)
	for i > 0 && o.levels[i-1].priority > priority {
		i--
	}
	if i > 0 && o.levels[i-1].priority == priority {
		return o.levels[i-1]
	}
	if len(o.levels) == 1 && o.levels[0].last == nil {
		o.levels[0].priority = priority
		return o.levels[0]
	}
	l := o.spareLevel
	o.spareLevel = nil
	if l == nil {
		l = &level[K]{flows: map[string]*flow[K]{}}
	}
	l.priority = priority
	o.levels = slices.Insert(o.levels, i, l)
	return l
}

// flow finds the flow of a group, or makes it the last of its level.
func (o *order[K]) flow(l *level[K], group string) *flow[K] {
	if !o.grouped && l.last != nil {
		return l.last
	}
	if o.grouped {
		if f := l.flows[group]; f != nil {
			return f
		}
	}
	f := o.newFlow()
	f.level = l
	l.append(f)
	if o.grouped {
		l.flows[group] = f
	}
	return f
}

func (o *order[K]) newFlow() *flow[K] {
	if i := len(o.spareFlows) - 1; i >= 0 {
		f := o.spareFlows[i]
		o.spareFlows = o.spareFlows[:i]
		return f
	}
	return &flow[K]{entries: list[K]{by: byFlow}}
}

// dropFlow takes an emptied flow out of its level, and with the last of them
// the level out of the order, unless it is the only one.
func (o *order[K]) dropFlow(f *flow[K], group string) {
	l := f.level
	l.remove(f)
	if o.grouped {
		delete(l.flows, group)
	}
	if len(o.spareFlows) < maxSpareFlows {
		o.spareFlows = append(o.spareFlows, f)
	}
	if l.last == nil && len(o.levels) > 1 {
		i := slices.Index(o.levels, l)
		o.levels = slices.Delete(o.levels, i, i+1)
		o.spareLevel = l
	}
}

// turn is the entry whose turn it is; its flow becomes the last of the ring.
func (l *level[K]) turn() *entry[K] {
	l.last = l.last.next
	return l.last.entries.front
}

func (l *level[K]) append(f *flow[K]) {
	if l.last == nil {
		f.prev, f.next = f, f
	} else {
		f.prev, f.next = l.last, l.last.next
		f.prev.next, f.next.prev = f, f
	}
	l.last = f
}

func (l *level[K]) remove(f *flow[K]) {
	f.prev.next, f.next.prev = f.next, f.prev
	if l.last == f {
		l.last = f.prev
	}
	if l.last == f {
		l.last = nil
	}
	f.level, f.prev, f.next = nil, nil, nil
}
