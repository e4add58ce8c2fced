package leader

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// record is what a lease says. That it changes is the only sign of life of a
// leader: its times are of the leader's clock and compared with no other.
type record struct {
	holder            string
	duration          time.Duration
	acquired, renewed time.Time
	transitions       int32
}

func recordOf(l *coordinationv1.Lease) record {
	var r record
	s := l.Spec
	if s.HolderIdentity != nil {
		r.holder = *s.HolderIdentity
	}
	if s.LeaseDurationSeconds != nil {
		r.duration = time.Duration(*s.LeaseDurationSeconds) * time.Second
	}
	if s.AcquireTime != nil {
		r.acquired = s.AcquireTime.Time
	}
	if s.RenewTime != nil {
		r.renewed = s.RenewTime.Time
	}
	if s.LeaseTransitions != nil {
		r.transitions = *s.LeaseTransitions
	}
	return r
}

func (r record) same(o record) bool {
	return r.sameTerm(o) && r.duration == o.duration && r.renewed.Equal(o.renewed)
}

// sameTerm reports whether both are of one time of leadership.
func (r record) sameTerm(o record) bool {
	return r.holder == o.holder && r.transitions == o.transitions && r.acquired.Equal(o.acquired)
}

// onto returns a copy of a lease that says r, and leaves alone what is not of it.
func (r record) onto(l *coordinationv1.Lease) *coordinationv1.Lease {
	l = l.DeepCopy()
	seconds := int32((r.duration + time.Second - 1) / time.Second)
	l.Spec.HolderIdentity = &r.holder
	l.Spec.LeaseDurationSeconds = &seconds
	l.Spec.AcquireTime = &metav1.MicroTime{Time: r.acquired}
	l.Spec.RenewTime = &metav1.MicroTime{Time: r.renewed}
	l.Spec.LeaseTransitions = &r.transitions
	return l
}

// stamp is a time as a lease can hold it.
func stamp(t time.Time) time.Time { return t.Truncate(time.Microsecond) }

// sighting is what a candidate has seen of the lease.
type sighting struct {
	// lease is the newest; nil if there is none.
	lease *coordinationv1.Lease
	// record is the last that there was, also if the lease has been deleted since:
	// who held it may not know yet.
	record record
	known  bool
	// at is when record was first seen, by our own monotonic clock. The leader sent
	// it before.
	at time.Time
}

// observe takes what was read just now; nil is that there is no lease.
func (s *sighting) observe(l *coordinationv1.Lease, now time.Time) {
	s.lease = l
	if l == nil {
		return
	}
	if r := recordOf(l); !s.known || !r.same(s.record) {
		s.record, s.known, s.at = r, true, now
	}
}

// freeAt is when the lease may be taken if nothing is heard of its holder; other
// is the duration of a lease that tells none.
func (s *sighting) freeAt(other time.Duration) time.Time {
	switch {
	case !s.known || s.record.holder == "":
		return time.Time{}
	case s.record.duration <= 0:
		return s.at.Add(other)
	}
	return s.at.Add(s.record.duration)
}
