package events

import (
	"container/list"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// subjectKey is what events have in common that are similar.
type subjectKey struct {
	about  corev1.ObjectReference
	kind   Type
	reason string
}

// subject is what is known of similar events.
type subject struct {
	key    subjectKey
	bucket bucket
	// fresh is when the last new notes came, the oldest first: Options.Similar of
	// them at most.
	fresh []time.Time
	// series is how many there are; with none, the subject is in the list of idle ones.
	series int
	idle   *list.Element
}

// isNew notes that a new note came, and reports whether there are too many of them.
func (s *subject) isNew(o *Options, now time.Time) (tooMany bool) {
	if len(s.fresh) < o.Similar {
		s.fresh = append(s.fresh, now)
		return false
	}
	tooMany = now.Sub(s.fresh[0]) < o.SimilarWithin
	copy(s.fresh, s.fresh[1:])
	s.fresh[len(s.fresh)-1] = now
	return tooMany
}

// seriesKey is what events have in common that are the same. What is combined has
// none of the last three.
type seriesKey struct {
	subjectKey
	combined     bool
	related      corev1.ObjectReference
	action, note string
}

func keyOf(o occurrence) seriesKey {
	k := seriesKey{subjectKey: o.subject, action: o.action, note: o.note}
	if o.related != nil {
		k.related = identity(*o.related)
	}
	return k
}

// series is one event object, and how often it happened.
type series struct {
	key     seriesKey
	subject *subject
	// event is the object as it was for the first time; nobody changes it.
	event *eventsv1.Event
	count int32
	last  time.Time
	// told is how many of count the server has heard of.
	told   int32
	writes int // that succeeded
	tries  int // that failed since
	// writing says that a write is under way. Otherwise, if not all is told, the
	// series is in the heap, until due.
	writing bool
	due     time.Time
	index   int           // in the heap; -1 if it is not there
	place   *list.Element // among those of which all is told; nil if it is not there
}

// pause is what is left between two writes of a series: a second at first, and up
// to limit while it goes on.
func (s *series) pause(limit time.Duration) time.Duration {
	return min(time.Second<<min(s.writes-1, 30), limit)
}

const (
	// maxTries is how often a write is tried, over five to nine minutes.
	maxTries = 15
	maxWait  = time.Minute
)

// backoff is what is waited after a write failed; half of it is by chance.
func (s *series) backoff() time.Duration {
	d := min(time.Second<<min(s.tries-1, 30), maxWait)
	return d/2 + rand.N(d/2+1)
}

// combinedPrefix is that of client-go.
const combinedPrefix = "(combined from similar events): "

// newEvent is the object of an event that happens for the first time.
func (o *Options) newEvent(c occurrence, combined bool) *eventsv1.Event {
	e := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace(c.regarding), Name: eventName(c.regarding.Name, c.at), Annotations: c.annotations},
		EventTime:           metav1.NewMicroTime(c.at.Truncate(time.Microsecond)),
		ReportingController: o.Component, ReportingInstance: o.Instance,
		Action: c.action, Reason: c.subject.reason, Type: string(c.subject.kind),
		Regarding: c.regarding, Related: c.related, Note: c.note,
	}
	if combined {
		e.Related, e.Note = nil, cut(combinedPrefix+c.note, maxNote)
	}
	return e
}

// eventName is the object's name, and something unique: the time, and chance where
// two processes may have the same.
func eventName(object string, at time.Time) string {
	unique := uint64(at.UnixNano())&^0xffffff | rand.Uint64N(1<<24)
	name := fmt.Sprintf("%s.%x", object, unique)
	if len(apivalidation.NameIsDNSSubdomain(name, false)) > 0 {
		return string(uuid.NewUUID()) // names of roles, and long ones
	}
	return name
}
