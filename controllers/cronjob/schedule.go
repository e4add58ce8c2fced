package cronjob

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
)

// tooMany is how many times may be missed without a warning.
const tooMany = 100

// calendar tells the times of a schedule.
type calendar struct {
	cron.Schedule
	zone *time.Location
}

func zoneOf(c *batchv1.CronJob) string {
	if c.Spec.TimeZone == nil {
		return ""
	}
	return *c.Spec.TimeZone
}

// calendarOf reads a schedule; if it cannot be read, the note says why.
func calendarOf(c *batchv1.CronJob) (calendar, *note) {
	zone := time.Local
	if name := zoneOf(c); name != "" {
		var err error
		if zone, err = time.LoadLocation(name); err != nil {
			return calendar{}, warn("UnknownTimeZone", "invalid timeZone: %q: %s", name, err)
		}
	}
	parsed, err := cron.ParseStandard(c.Spec.Schedule)
	if err != nil {
		return calendar{}, warn("UnparseableSchedule", "unparseable schedule: %q : %s", c.Spec.Schedule, err)
	}
	cal := calendar{parsed, zone}
	if cal.next(c.CreationTimestamp.Time).IsZero() {
		return calendar{}, warn("InvalidSchedule", "invalid schedule: %s : %s", c.Spec.Schedule, "time difference between two schedules is less than 1 second")
	}
	return cal, nil
}

// unsupported reports whether a schedule has its own zone.
func unsupported(c *batchv1.CronJob) bool { return strings.Contains(c.Spec.Schedule, "TZ") }

// next is the first time after t. Schedules without a zone of their own are of the
// zone that t is told in.
func (c calendar) next(t time.Time) time.Time { return c.Next(t.In(c.zone)) }

// last is the latest time after t and not after now, and how many there are, counted
// until they are too many. The time is zero if there is none.
func (c calendar) last(t, now time.Time) (last time.Time, count int) {
	for next := c.next(t); !next.IsZero() && !next.After(now); next = c.next(next) {
		if last = next; count > tooMany {
			return c.latest(t, now), count
		}
		count++
	}
	return last, count
}

// latest is the latest time after t and not after now, where it is known that there
// are many.
func (c calendar) latest(t, now time.Time) time.Time {
	if every, ok := c.Schedule.(cron.ConstantDelaySchedule); ok {
		first := c.next(t)
		return first.Add(now.Sub(first) / every.Delay * every.Delay)
	}
	var last time.Time
	for back := time.Minute; last.IsZero(); back *= 2 {
		for next := c.next(now.Add(-back)); !next.After(now); next = c.next(next) {
			last = next
		}
	}
	return last
}

// nameOf is the name of the job of a time.
func nameOf(c *batchv1.CronJob, t time.Time) string { return fmt.Sprintf("%s-%d", c.Name, t.Unix()/60) }
