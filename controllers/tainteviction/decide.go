package tainteviction

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// verdict is what becomes of a pod.
type verdict string

const (
	stay  verdict = "stay"
	leave verdict = "leave" // when its time is up
	evict verdict = "evict" // now
)

// expelling are the taints of a node that pods have to tolerate to stay.
func expelling(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectNoExecute })
}

// decide says what becomes of a pod whose time began at a time, and how long that is
// still off. Of each taint the first toleration counts that fits, and of these the
// shortest.
func decide(pod *corev1.Pod, taints []corev1.Taint, since, now time.Time) (verdict, time.Duration) {
	var until *time.Duration
	for _, taint := range taints {
		i := slices.IndexFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(klog.Background(), &taint, true)
		})
		if i < 0 {
			return evict, 0
		}
		if d := patience(pod.Spec.Tolerations[i]); d != nil && (until == nil || *d < *until) {
			until = d
		}
	}
	if until == nil {
		return stay, 0
	}
	if wait := since.Add(*until).Sub(now); wait > 0 {
		return leave, wait
	}
	return evict, 0
}

// patience is for how long a toleration holds; nil is for ever.
func patience(t corev1.Toleration) *time.Duration {
	if t.TolerationSeconds == nil {
		return nil
	}
	d := time.Duration(max(*t.TolerationSeconds, 0)) * time.Second
	return &d
}
