package workqueue

import (
	"fmt"
	"strings"
)

// Reason is the sort of a [Cause].
type Reason string

// The reasons for which a key comes to be queued.
const (
	Event   Reason = "event"   // a watched object changed
	Retry   Reason = "retry"   // the last run failed
	Requeue Reason = "requeue" // the last run asked to be run again later
	Resync  Reason = "resync"  // it was time to look again
	Manual  Reason = "manual"  // somebody asked
)

// Cause is one reason for which a key was added.
type Cause struct {
	Reason Reason `json:"reason"`
	// Kind and Object name the object that changed.
	Kind   string `json:"kind,omitempty"`
	Object string `json:"object,omitempty"`
	// Old and New are its revisions before and after. Without Old it was
	// created, without New it is gone.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	// Writer is who changed it.
	Writer string `json:"writer,omitempty"`
	// Note is for what no other field says, such as the error of a failed run.
	Note string `json:"note,omitempty"`
	// Count is how many causes were merged into this one; zero means one.
	Count int `json:"count,omitempty"`
}

// String is the cause as a line of a log has it.
func (c Cause) String() string {
	var b strings.Builder
	b.WriteString(string(c.Reason))
	for _, s := range []string{c.Kind, c.Object} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	if c.Old != "" || c.New != "" {
		fmt.Fprintf(&b, " %s->%s", c.Old, c.New)
	}
	if c.Writer != "" {
		b.WriteString(" by " + c.Writer)
	}
	if c.Note != "" {
		b.WriteString(": " + c.Note)
	}
	if c.Count > 1 {
		fmt.Fprintf(&b, " (%d times)", c.Count)
	}
	return b.String()
}

// about says whether both causes tell of the same thing, so that one can
// stand for both.
func (c *Cause) about(d *Cause) bool {
	return c.Reason == d.Reason && c.Object == d.Object && c.Kind == d.Kind
}

// absorb makes c stand for the later cause d too: from c's old revision to d's
// new one, and what d says of writer and note.
func (c *Cause) absorb(d *Cause) {
	c.New, c.Writer, c.Note = d.New, d.Writer, d.Note
	c.Count += max(d.Count, 1)
}

// mergeCause adds c to causes and says whether it found room: causes about one
// object become one, and there are never more than limit.
func mergeCause(causes []Cause, c *Cause, limit int) ([]Cause, bool) {
	for i := range causes {
		if causes[i].about(c) {
			causes[i].absorb(c)
			return causes, true
		}
	}
	if len(causes) >= limit {
		return causes, false
	}
	causes = append(causes, *c)
	causes[len(causes)-1].Count = max(c.Count, 1)
	return causes, true
}
