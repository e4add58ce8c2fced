package job

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// span is a run of completion indexes, both ends included.
type span struct{ first, last int }

// indexes is a set of completion indexes, as spans in order that do not touch.
type indexes []span

// parseIndexes reads a set as statuses and policies have it: "1,3-5,7". What is no
// number is left out, and what is not below the limit too.
func parseIndexes(text string, limit int) indexes {
	var out indexes
	for part := range strings.SplitSeq(text, ",") {
		from, to, isSpan := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		last := first
		if isSpan {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		if last = min(last, limit-1); first <= last {
			out = out.union(indexes{{first, last}})
		}
	}
	return out
}

// indexesOf is the set of some indexes.
func indexesOf(of map[int]bool) indexes {
	var out indexes
	for _, i := range slices.Sorted(maps.Keys(of)) {
		out = out.push(span{i, i})
	}
	return out
}

// push adds a span that does not begin before the others.
func (x indexes) push(s span) indexes {
	if n := len(x); n > 0 && s.first <= x[n-1].last+1 {
		x[n-1].last = max(x[n-1].last, s.last)
		return x
	}
	return append(x, s)
}

func (x indexes) union(y indexes) indexes {
	all := slices.Concat(x, y)
	slices.SortFunc(all, func(a, b span) int { return a.first - b.first })
	var out indexes
	for _, s := range all {
		out = out.push(s)
	}
	return out
}

func (x indexes) has(i int) bool {
	at, found := slices.BinarySearchFunc(x, i, func(s span, i int) int { return s.first - i })
	return found || at > 0 && i <= x[at-1].last
}

func (x indexes) count() int {
	n := 0
	for _, s := range x {
		n += s.last - s.first + 1
	}
	return n
}

// common is how many indexes two sets have in common.
func (x indexes) common(y indexes) int { return x.count() + y.count() - x.union(y).count() }

// absent returns up to n indexes below a limit that are not in the set.
func (x indexes) absent(n, limit int) []int {
	var out []int
	next := 0
	for _, s := range slices.Concat(x, indexes{{limit, limit}}) {
		for ; next < min(s.first, limit) && len(out) < n; next++ {
			out = append(out, next)
		}
		next = max(next, s.last+1)
	}
	return out
}

// String is the set as statuses have it: two in a row are not a span yet.
func (x indexes) String() string {
	parts := make([]string, len(x))
	for i, s := range x {
		switch s.last - s.first {
		case 0:
			parts[i] = strconv.Itoa(s.first)
		case 1:
			parts[i] = fmt.Sprintf("%d,%d", s.first, s.last)
		default:
			parts[i] = fmt.Sprintf("%d-%d", s.first, s.last)
		}
	}
	return strings.Join(parts, ",")
}

// none is the index of pods that have none.
const none = -1

func indexOf(p *corev1.Pod) int {
	if i, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil && i >= 0 {
		return i
	}
	return none
}

// failuresOf is how many pods of a pod's index failed before it, and how many of
// these a policy said to ignore.
func failuresOf(p *corev1.Pod) (counted, ignored int) {
	number := func(annotation string) int {
		n, err := strconv.ParseInt(p.Annotations[annotation], 10, 32)
		if err != nil || n < 0 {
			return 0
		}
		return int(n)
	}
	return number(batchv1.JobIndexFailureCountAnnotation), number(batchv1.JobIndexIgnoredFailureCountAnnotation)
}
