package informer

import (
	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// DeltaType says what became of an object.
type DeltaType uint8

// The types of deltas. What a handler sees of a key is a legal history: Added,
// then any number of Updated, Replaced and Sync, then Deleted, and again. An
// object that took the name of another is a Deleted and an Added.
const (
	Added DeltaType = iota + 1
	Updated
	Deleted
	// Replaced is an update that was found by listing again: how the object came
	// to be as it is was missed.
	Replaced
	// Sync is a repetition of what the handler has seen already.
	Sync
)

func (t DeltaType) String() string {
	return [...]string{"Invalid", "Added", "Updated", "Deleted", "Replaced", "Sync"}[min(t, Sync)]
}

// Delta is what became of one object since the handler last heard of it. It may
// stand for several changes. Its objects are shared and read-only.
type Delta[T client.Object] struct {
	Type DeltaType
	Key  client.Key
	// Initial says that the object was there when the handler joined, or when the
	// informer first listed.
	Initial bool
	// Unknown says of a Deleted that the deletion itself was missed: Object is the
	// last state that is known, and there may have been later ones.
	Unknown bool

	old, now cache.Entry[T]
	final    T
	hasFinal bool
}

// Object returns the object as it is, or as it last was if it is deleted. In a
// compact informer, each call decodes it.
func (d Delta[T]) Object() T {
	switch {
	case d.hasFinal:
		return d.final
	case d.Type == Deleted:
		return d.old.Object()
	}
	return d.now.Object()
}

// Old returns the object as the handler last saw it, and nil if it is Added.
func (d Delta[T]) Old() T { return d.old.Object() }

// Revision is that of the object; of a deletion that was seen, it is the one at
// which the object went.
func (d Delta[T]) Revision() cache.Revision {
	switch {
	case d.hasFinal:
		return cache.Revision(d.final.GetResourceVersion())
	case d.Type == Deleted:
		return d.old.Revision()
	}
	return d.now.Revision()
}

// OldRevision is that of the object as the handler last saw it, "" if it is Added.
func (d Delta[T]) OldRevision() cache.Revision {
	if !d.old.Exists() {
		return ""
	}
	return d.old.Revision()
}

// change is what became of one object in the store.
type change[T client.Object] struct {
	old, now cache.Entry[T]
	// final is the state in which old was deleted, if the server told.
	final             T
	hasFinal          bool
	initial, replaced bool
}

// pending is what a handler has yet to be told of one key: old is what it knows,
// now is what is. It is an element of the handler's list; a mark has no key, and
// stands for the end of the initial list.
type pending[T client.Object] struct {
	key      client.Key
	old, now cache.Entry[T]
	// last is the state in which old went, if it did.
	last                    T
	lastKnown               lastState
	initial, replaced, sync bool
	mark                    bool
	// ghost is a state of an object that came and went since.
	ghost cache.Entry[T]

	before, after *pending[T]
}

// lastState says what is known of the end of an object that was deleted.
type lastState uint8

const (
	notGone   lastState = iota
	goneSeen            // last is what the server sent with the deletion
	goneKnown           // last is what the store had
)

// add merges a later change into what is pending.
func (p *pending[T]) add(c change[T]) {
	if p.lastKnown == notGone && p.old.Exists() && c.old.Exists() && c.old.UID() == p.old.UID() &&
		(!c.now.Exists() || c.now.UID() != p.old.UID()) {
		p.lastKnown, p.last = goneKnown, c.final
		if c.hasFinal {
			p.lastKnown = goneSeen
		} else {
			p.last = c.old.Object()
		}
	}
	p.now = c.now
	if p.old.Exists() && p.now.Exists() && p.old.UID() == p.now.UID() {
		p.lastKnown = notGone // it came back: out of a scope and into it again
	}
	p.initial = p.initial || c.initial
	p.replaced = p.replaced || c.replaced
}

// moot reports whether there is nothing to tell: what came went unseen.
func (p *pending[T]) moot() bool { return !p.mark && !p.old.Exists() && !p.now.Exists() }

// deltas appends what is to be told, which is nothing, one thing or two. Objects
// that fits does not fit do not exist for the handler.
func (p *pending[T]) deltas(out []Delta[T], fits func(cache.Entry[T]) bool) []Delta[T] {
	known := p.old.Exists() && fits(p.old)
	wanted := p.now.Exists() && fits(p.now)
	same := p.old.Exists() && p.now.Exists() && p.old.UID() == p.now.UID()
	d := Delta[T]{Key: p.key, now: p.now, Initial: p.initial}
	if known && (!wanted || !same) {
		out = append(out, p.deleted(same))
		known = false
	}
	switch {
	case p.moot() && p.ghost.Exists() && fits(p.ghost):
		return append(out, Delta[T]{Type: Deleted, Key: p.key, old: p.ghost, Unknown: true})
	case !wanted:
		return out
	case !known:
		d.Type = Added
		return append(out, d)
	case p.sync && p.old.Revision() == p.now.Revision():
		d.Type = Sync
	case p.old.Revision() == p.now.Revision():
		return out // it went and came back
	case p.replaced:
		d.Type = Replaced
	default:
		d.Type = Updated
	}
	d.old, d.Initial = p.old, false
	return append(out, d)
}

// deleted is the end of old. If the object exists still, it does not fit any more.
func (p *pending[T]) deleted(exists bool) Delta[T] {
	d := Delta[T]{Type: Deleted, Key: p.key, old: p.old}
	switch {
	case exists:
		d.final, d.hasFinal = p.now.Object(), true
	case p.lastKnown != notGone:
		d.final, d.hasFinal, d.Unknown = p.last, true, p.lastKnown == goneKnown
	default:
		d.Unknown = true
	}
	return d
}
