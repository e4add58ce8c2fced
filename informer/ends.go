package informer

import (
	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// maxEnds bounds what is remembered of objects that went.
const maxEnds = 10_000

// ends remembers the newest revision at which parts have shown objects that one of
// them has let go. A part that lags behind may tell of older ones: they are not to
// bring back what is gone, or to undo what is known. An object that went from one
// part and is in another comes with the revision of its going, or a later one.
//
// It is used by informers of several parts only. What all parts have passed is
// dropped now and then; if a part does not come along, all is.
type ends struct {
	at    map[client.Key]cache.Revision
	sweep int // how many there are when it is time to look
}

// note notes that an object went, that was last shown at a revision.
func (e *ends) note(k client.Key, r cache.Revision) {
	if e.at == nil {
		e.at = map[client.Key]cache.Revision{}
	}
	if last, ok := e.at[k]; !ok || r.Includes(last) {
		e.at[k] = r
	}
}

// after reports whether an object was shown later than at a revision, and went.
func (e *ends) after(k client.Key, r cache.Revision) bool {
	last, ok := e.at[k]
	return ok && !r.Includes(last) && last.Includes(r)
}

// passed is told up to where all parts are complete.
func (e *ends) passed(r cache.Revision) {
	if len(e.at) < max(e.sweep, 64) {
		return
	}
	for k, last := range e.at {
		if r.Includes(last) {
			delete(e.at, k)
		}
	}
	if len(e.at) > maxEnds {
		e.forget()
	}
	e.sweep = 2 * len(e.at)
}

// forget is for a server that begins anew with older revisions.
func (e *ends) forget() { e.at = nil }
