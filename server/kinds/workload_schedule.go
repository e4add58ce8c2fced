package kinds

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The schedules of CronJobs: five fields, or a word that starts with "@". Only
// their form matters here.

// scheduleField is what one field of a schedule may hold.
type scheduleField struct {
	min, max int
	names    []string // of the values from min on
}

var scheduleFields = []scheduleField{
	{0, 59, nil}, {0, 23, nil}, {1, 31, nil},
	{1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// checkSchedule returns what is wrong with a schedule.
func checkSchedule(text string) error {
	if text == "" {
		return fmt.Errorf("empty spec string")
	}
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		zone, rest, found := strings.Cut(text, " ")
		if !found {
			return fmt.Errorf("invalid schedule format: runtime error: slice bounds out of range [:-1]")
		}
		_, name, _ := strings.Cut(zone, "=")
		if _, err := time.LoadLocation(name); err != nil {
			return fmt.Errorf("provided bad location %s: %v", name, err)
		}
		text = strings.TrimSpace(rest)
	}
	if strings.HasPrefix(text, "@") {
		return checkDescriptor(text)
	}
	parts := strings.Fields(text)
	if len(parts) != len(scheduleFields) {
		return fmt.Errorf("expected exactly %d fields, found %d: %s", len(scheduleFields), len(parts), parts)
	}
	for i, f := range scheduleFields {
		if err := f.check(parts[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkDescriptor(text string) error {
	switch text {
	case "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly":
		return nil
	}
	if period, ok := strings.CutPrefix(text, "@every "); ok {
		if _, err := time.ParseDuration(period); err != nil {
			return fmt.Errorf("failed to parse duration %s: %s", text, err)
		}
		return nil
	}
	return fmt.Errorf("unrecognized descriptor: %s", text)
}

// check reads a list of ranges; empty elements are passed over.
func (f scheduleField) check(list string) error {
	for part := range strings.SplitSeq(list, ",") {
		if part == "" {
			continue
		}
		if err := f.checkRange(part); err != nil {
			return err
		}
	}
	return nil
}

// checkRange reads "*", "?", a value or two with a hyphen, and then a step.
func (f scheduleField) checkRange(text string) error {
	parts := strings.Split(text, "/")
	ends := strings.Split(parts[0], "-")
	first, last := f.min, f.max
	var err error
	if ends[0] != "*" && ends[0] != "?" {
		if first, err = f.value(ends[0]); err != nil {
			return err
		}
		switch len(ends) {
		case 1:
			last = first
		case 2:
			if last, err = f.value(ends[1]); err != nil {
				return err
			}
		default:
			return fmt.Errorf("too many hyphens: %s", text)
		}
	}
	step := 1
	switch len(parts) {
	case 1:
	case 2:
		if step, err = scheduleNumber(parts[1]); err != nil {
			return err
		}
		if len(ends) == 1 {
			last = f.max
		}
	default:
		return fmt.Errorf("too many slashes: %s", text)
	}
	return f.checkBounds(first, last, step, text)
}

func (f scheduleField) checkBounds(first, last, step int, text string) error {
	switch {
	case first < f.min:
		return fmt.Errorf("beginning of range (%d) below minimum (%d): %s", first, f.min, text)
	case last > f.max:
		return fmt.Errorf("end of range (%d) above maximum (%d): %s", last, f.max, text)
	case first > last:
		return fmt.Errorf("beginning of range (%d) beyond end of range (%d): %s", first, last, text)
	case step == 0:
		return fmt.Errorf("step of range should be a positive number: %s", text)
	}
	return nil
}

func (f scheduleField) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	return scheduleNumber(text)
}

func scheduleNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("failed to parse int from %s: %s", text, err)
	}
	if n < 0 {
		return 0, fmt.Errorf("negative number (%d) not allowed: %s", n, text)
	}
	return n, nil
}
