package figure

import "fmt"

// Unit is what a row counts in.
type Unit string

// The units of rows. In rates more is better, in the others less.
const (
	Seconds     Unit = "s"
	Megabytes   Unit = "MB"
	PerSecond   Unit = "/s"
	MBPerSecond Unit = "MB/s"
	EventsPerS  Unit = "events/s"
	Kilobytes   Unit = "kB"
	Micros      Unit = "µs"
)

func (u Unit) isRate() bool { return u != Seconds && u != Megabytes && u != Kilobytes && u != Micros }

// work is the unit of what a rate counts.
func (u Unit) work() string {
	switch u {
	case MBPerSecond:
		return "MB"
	case EventsPerS:
		return "event"
	}
	return "request"
}

// Target is the budget of a row; the zero Target is none.
type Target struct {
	// AtMost and AtLeast bound our own value, Times the ratio to the peer from below.
	AtMost, AtLeast, Times float64
}

// Row is one figure of both servers, one sample a run.
type Row struct {
	Name       string
	Unit       Unit
	Target     Target
	Ours, Peer []Sample
}

// Ratio is how many times better ours is, by the medians. It is zero if one is
// missing.
func (r Row) Ratio() float64 {
	ours, peer := medianOf(r.Ours, value), medianOf(r.Peer, value)
	if ours == 0 || peer == 0 {
		return 0
	}
	if r.Unit.isRate() {
		return ours / peer
	}
	return peer / ours
}

// Verdict says whether the target is reached: "met", "missed", or "" if there is
// none or too little was measured.
func (r Row) Verdict() string {
	ours := medianOf(r.Ours, value)
	switch {
	case ours == 0, r.Target == Target{}, r.Target.Times > 0 && r.Ratio() == 0:
		return ""
	case r.Target.AtMost > 0 && ours > r.Target.AtMost, ours < r.Target.AtLeast, r.Target.Times > 0 && r.Ratio() < r.Target.Times:
		return "missed"
	}
	return "met"
}

func (r Row) target() string {
	switch {
	case r.Target.Times > 0:
		return fmt.Sprintf(">= %gx", r.Target.Times)
	case r.Target.AtMost > 0:
		return "<= " + r.format(r.Target.AtMost)
	case r.Target.AtLeast > 0:
		return ">= " + r.format(r.Target.AtLeast)
	}
	return ""
}

// format shows a value of the row.
func (r Row) format(v float64) string {
	switch {
	case v == 0:
		return ""
	case r.Unit == Seconds && v < 1:
		return fmt.Sprintf("%.3f s", v)
	case r.Unit == Seconds:
		return fmt.Sprintf("%.2f s", v)
	case r.Unit == Micros:
		return micros(v)
	case r.Unit == Kilobytes:
		return fmt.Sprintf("%.2f kB", v)
	case r.Unit == PerSecond:
		return thousands(v) + " /s"
	}
	return thousands(v) + " " + string(r.Unit)
}
