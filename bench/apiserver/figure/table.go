package figure

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Results is the table of the figures: medians, ratios, targets.
func Results(rows []Row, peer string) string {
	lines := [][]string{{"figure", "Evenkeel", peer, "ratio", "target", ""}}
	for _, r := range rows {
		lines = append(lines, []string{
			r.Name, r.format(medianOf(r.Ours, value)), r.format(medianOf(r.Peer, value)),
			times(r.Ratio()), r.target(), r.Verdict(),
		})
	}
	return markdown(lines)
}

// Alone is the table of figures that have no peer: medians, the lowest and highest of
// the runs that count, and targets.
func Alone(rows []Row) string {
	lines := [][]string{{"figure", "median", "lowest to highest", "of runs", "target", ""}}
	for _, r := range rows {
		line := append([]string{r.Name, r.format(medianOf(r.Ours, value))}, r.spread(r.Ours)...)
		lines = append(lines, append(line, r.target(), r.Verdict()))
	}
	return markdown(lines)
}

// Steps is the table of what a server did one after the other, each a row of seconds:
// how long it took, how much was done in that time, and with how much CPU time,
// memory and disk.
func Steps(rows []Row, work string) string {
	lines := [][]string{{"step", "time", work + "/s", "CPU", "cores busy", "CPU per " + work, "memory after", "most", "data after", "generator", "others"}}
	for _, r := range rows {
		took := medianOf(r.Ours, value)
		if took == 0 {
			continue
		}
		cpu := medianOf(r.Ours, func(s Sample) float64 { return s.Server.Seconds() })
		lines = append(lines, []string{
			r.Name, r.format(took), thousands(medianOf(r.Ours, func(s Sample) float64 { return s.Work / s.Value })), r.format(cpu),
			fmt.Sprintf("%.2f", cpu/took), micros(medianOf(r.Ours, serverCost)),
			megabytes(medianOf(r.Ours, func(s Sample) float64 { return s.Memory })), megabytes(medianOf(r.Ours, func(s Sample) float64 { return s.Peak })),
			megabytes(medianOf(r.Ours, func(s Sample) float64 { return s.Disk })),
			micros(medianOf(r.Ours, generatorCost)), fmt.Sprintf("%.0f %%", 100*medianOf(r.Ours, others)),
		})
	}
	return markdown(lines)
}

func megabytes(v float64) string { return thousands(v) + " MB" }

// Costs is the table of CPU time per unit of work, of servers and generator.
func Costs(rows []Row) string {
	lines := [][]string{{
		"CPU time per", "Evenkeel", "generator", "others", "peer", "generator", "others", "server ratio",
	}}
	for _, r := range rows {
		ours, peer := medianOf(r.Ours, serverCost), medianOf(r.Peer, serverCost)
		if ours == 0 && peer == 0 {
			continue
		}
		line := []string{r.Unit.work() + ": " + r.Name}
		line = append(line, costs(r.Ours)...)
		line = append(line, costs(r.Peer)...)
		if ours > 0 {
			line = append(line, times(peer/ours))
		} else {
			line = append(line, "")
		}
		lines = append(lines, line)
	}
	return markdown(lines)
}

// costs are three cells: server, generator, and the share of the cores that
// others took.
func costs(samples []Sample) []string {
	if len(samples) == 0 {
		return []string{"", "", ""}
	}
	return []string{
		micros(medianOf(samples, serverCost)), micros(medianOf(samples, generatorCost)),
		fmt.Sprintf("%.0f %%", 100*medianOf(samples, others)),
	}
}

// Spreads is the table of the lowest and highest value of the runs that count,
// and of how many those are.
func Spreads(rows []Row, peer string) string {
	lines := [][]string{{"lowest to highest", "Evenkeel", "of runs", peer, "of runs"}}
	for _, r := range rows {
		line := append([]string{r.Name}, r.spread(r.Ours)...)
		lines = append(lines, append(line, r.spread(r.Peer)...))
	}
	return markdown(lines)
}

func (r Row) spread(samples []Sample) []string {
	if len(samples) == 0 {
		return []string{"", ""}
	}
	byValue := func(a, b Sample) int { return cmp.Compare(a.Value, b.Value) }
	count := counted(samples)
	low, high := slices.MinFunc(count, byValue), slices.MaxFunc(count, byValue)
	spread := strings.TrimSuffix(r.format(low.Value), " "+string(r.Unit)) + " to " + r.format(high.Value)
	return []string{spread, fmt.Sprintf("%d of %d", len(count), len(samples))}
}

func times(ratio float64) string {
	switch {
	case ratio == 0:
		return ""
	case ratio < 10:
		return fmt.Sprintf("%.1fx", ratio)
	}
	return thousands(ratio) + "x"
}

// micros shows microseconds, in milliseconds if there are many.
func micros(v float64) string {
	switch {
	case v >= 10_000:
		return thousands(v/1000) + " ms"
	case v >= 1000:
		return fmt.Sprintf("%.1f ms", v/1000)
	case v >= 10:
		return fmt.Sprintf("%.0f µs", v)
	}
	return fmt.Sprintf("%.1f µs", v)
}

// thousands rounds a number and groups its digits by commas.
func thousands(v float64) string {
	if v < 10 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	var out strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(d)
	}
	return out.String()
}

// markdown aligns lines as a table; the first is its head, and all columns but
// the first stand to the right.
func markdown(lines [][]string) string {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	var out strings.Builder
	for n, line := range lines {
		for i, cell := range line {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				out.WriteString("| " + cell + space)
			} else {
				out.WriteString(" | " + space + cell)
			}
		}
		out.WriteString(" |\n")
		if n == 0 {
			out.WriteString(rule(widths))
		}
	}
	return out.String()
}

func rule(widths []int) string {
	var out strings.Builder
	for i, w := range widths {
		if i == 0 {
			out.WriteString("|" + strings.Repeat("-", w+2))
		} else {
			out.WriteString("|" + strings.Repeat("-", w+1) + ":")
		}
	}
	return out.String() + "|\n"
}

// Show is one sample in a line: its value, and whose CPU time it took.
func (r Row) Show(s Sample) string {
	out := r.format(s.Value)
	if s.Work > 0 {
		out += fmt.Sprintf("; CPU: server %s, generator %s", micros(serverCost(s)), micros(generatorCost(s)))
	}
	if s.Others > Quiet {
		out += fmt.Sprintf("; disturbed, others took %.0f %%", 100*s.Others)
	}
	return out
}
