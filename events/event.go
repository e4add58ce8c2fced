package events

import (
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Type says how bad it is.
type Type string

// The types that servers accept.
const (
	Normal  = Type(corev1.EventTypeNormal)
	Warning = Type(corev1.EventTypeWarning)
)

// Event is something that happened to an object.
type Event struct {
	// Regarding is the object: typed, unstructured, metadata alone, or a
	// *corev1.ObjectReference, which may tell a part of one in its FieldPath.
	Regarding runtime.Object
	// Related is another object that has to do with it; nil is none.
	Related runtime.Object
	// Type is Normal if it is empty.
	Type Type
	// Reason is why, in one word in UpperCamelCase, for programs to read.
	Reason string
	// Action is what was done or failed, in one word too. The default is the reason.
	Action string
	// Note is what happened, for people to read. Beyond 1,024 bytes it is cut.
	Note string
	// Annotations are those of the object that is made; repetitions have none.
	Annotations map[string]string
}

const (
	maxNote = 1024
	maxWord = 128 // reason, action, instance
)

// occurrence is an event, checked, at a time.
type occurrence struct {
	subject     subjectKey
	regarding   corev1.ObjectReference
	related     *corev1.ObjectReference
	action      string
	note        string
	annotations map[string]string
	at          time.Time
}

// occurrence checks an event, and makes references of its objects.
func (r *Recorder) occurrence(e Event, now time.Time) (occurrence, error) {
	if e.Type == "" {
		e.Type = Normal
	}
	if e.Action == "" {
		e.Action = e.Reason
	}
	if err := e.check(); err != nil {
		return occurrence{}, err
	}
	regarding, err := r.reference(e.Regarding)
	if err != nil {
		return occurrence{}, fmt.Errorf("regarding: %w", err)
	}
	o := occurrence{
		subject:   subjectKey{about: identity(*regarding), kind: e.Type, reason: e.Reason},
		regarding: *regarding, action: e.Action, note: cut(e.Note, maxNote), annotations: maps.Clone(e.Annotations), at: now,
	}
	if e.Related != nil {
		if o.related, err = r.reference(e.Related); err != nil {
			return occurrence{}, fmt.Errorf("related: %w", err)
		}
	}
	return o, nil
}

func (e Event) check() error {
	switch {
	case e.Type != Normal && e.Type != Warning:
		return fmt.Errorf("type %q: %w: it is neither Normal nor Warning", e.Type, ErrEvent)
	case e.Reason == "" || len(e.Reason) > maxWord:
		return fmt.Errorf("reason %q: %w: it has 1 to %d bytes", e.Reason, ErrEvent, maxWord)
	case len(e.Action) > maxWord:
		return fmt.Errorf("action %q: %w: it has up to %d bytes", e.Action, ErrEvent, maxWord)
	}
	return nil
}

// identity is what tells objects apart: not their revision.
func identity(ref corev1.ObjectReference) corev1.ObjectReference {
	ref.ResourceVersion = ""
	return ref
}

// namespace is where an event about an object is kept.
func namespace(ref corev1.ObjectReference) string {
	if ref.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return ref.Namespace
}

// cut shortens a text to a number of bytes, says so, and leaves runes whole.
func cut(text string, to int) string {
	const dots = "..."
	if len(text) <= to {
		return text
	}
	end := to - len(dots)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}
