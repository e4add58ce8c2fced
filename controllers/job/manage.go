package job

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// manage says which pods are to be made or deleted. Both at once are not: what is
// too much goes first.
func (v *view) manage() plan {
	switch {
	case v.ends != nil:
		return plan{remove: v.active[:min(len(v.active), burst)]}
	case v.job.DeletionTimestamp != nil:
		return plan{}
	case v.suspended():
		return plan{discard: v.active[:min(len(v.active), burst)]}
	}
	wanted := v.wanted()
	if extra := v.surplus(len(v.active) - wanted); len(extra) > 0 {
		return plan{discard: extra[:min(len(extra), burst)]}
	}
	if lack := slices.DeleteFunc(slices.Clone(v.active), tracked); len(lack) > 0 {
		return plan{track: lack} // they were adopted
	}
	missing := wanted - len(v.active)
	if replacesFailedOnly(v.job) {
		missing -= int(v.terminating)
	}
	return plan{create: v.slots(min(missing, burst))}
}

// wanted is how many pods should run.
func (v *view) wanted() int {
	parallel := number32(v.job.Spec.Parallelism, 1)
	switch {
	case v.job.Spec.Completions != nil:
		return max(min(v.completions()-v.succeeded, parallel), 0)
	case v.succeeded > 0:
		return len(v.active) // those that run may finish
	}
	return parallel
}

// surplus are pods that are too many: at least n, those that have no index, and those
// whose index another has or that has succeeded.
func (v *view) surplus(n int) []*corev1.Pod {
	left := slices.Clone(v.active)
	slices.SortFunc(left, compare)
	if !v.indexed() {
		return left[:max(n, 0)]
	}
	var out, kept []*corev1.Pod
	taken := map[int]bool{}
	for _, p := range slices.Backward(left) { // who is furthest keeps the index
		if i := indexOf(p); !v.valid(p) || taken[i] || v.done.has(i) {
			out = append(out, p)
		} else {
			taken[i] = true
			kept = append(kept, p)
		}
	}
	slices.Reverse(kept)
	return append(out, kept[:max(n-len(out), 0)]...)
}

// slots are the pods to be made now, up to n. Failures are waited after.
func (v *view) slots(n int) []slot {
	if n <= 0 {
		return nil
	}
	if v.job.Spec.BackoffLimitPerIndex == nil {
		if wait := v.fails.wait(v.now); wait > 0 {
			v.lookAgain(wait)
			return nil
		}
	}
	if !v.indexed() {
		return slices.Repeat([]slot{{index: none}}, n)
	}
	taken := v.done.union(v.lost).union(v.indexesIn(v.active))
	if replacesFailedOnly(v.job) {
		taken = taken.union(v.indexesIn(slices.DeleteFunc(slices.Clone(v.pods), func(p *corev1.Pod) bool { return !terminating(p) })))
	}
	var out []slot
	for _, i := range taken.absent(n, v.completions()) {
		if s, now := v.slot(i); now {
			out = append(out, s)
		}
	}
	return out
}

// slot is the pod of an index, if it may be made now.
func (v *view) slot(index int) (slot, bool) {
	before := v.delayed[index]
	if before == nil {
		return slot{index: index}, true
	}
	failures, ignored := failuresOf(before)
	if wait := delay(failures+ignored+1, endOf(before), v.now); wait > 0 {
		v.lookAgain(wait)
		return slot{}, false
	}
	if rule(v.job, before).counts() {
		return slot{index, failures + 1, ignored}, true
	}
	return slot{index, failures, ignored + 1}, true
}
