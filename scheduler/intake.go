package scheduler

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/even-keel/evenkeel/informer"
)

// pod takes in what became of a pod.
func (l *loop) pod(d informer.Delta[*corev1.Pod]) {
	switch pod := d.Object(); {
	case d.Type == informer.Deleted:
		l.podGone(pod)
	case pod.Spec.NodeName != "":
		l.podOnNode(pod)
	case pod.DeletionTimestamp != nil || ended(pod):
		l.podGone(pod)
	case pod.Spec.SchedulerName == l.opts.Name:
		l.podWithout(pod, d.Old())
	}
}

// podGone is for pods that need no node any more.
func (l *loop) podGone(pod *corev1.Pod) {
	l.settle(pod)
	if _, placed := l.snapshot.pods[pod.UID]; placed {
		l.snapshot.RemovePod(pod.UID)
		l.queue.wake(podWent, time.Now())
	}
}

// settle is for pods about which there is nothing to decide any more.
func (l *loop) settle(pod *corev1.Pod) {
	delete(l.assumed, pod.UID)
	l.queue.remove(pod.UID)
	if len(l.snapshot.nominated) > 0 {
		l.snapshot.denominate(pod.UID)
	}
}

// podOnNode is for pods that have a node, by this scheduler or otherwise.
func (l *loop) podOnNode(pod *corev1.Pod) {
	assumed := l.assumed[pod.UID]
	l.settle(pod)
	before, known := l.snapshot.pods[pod.UID]
	l.snapshot.SetPod(pod)
	now, there := l.snapshot.pods[pod.UID]
	switch {
	case known && !there:
		l.queue.wake(podWent, time.Now())
	case !known && there, assumed && before.node == now.node:
		l.queue.wake(podCame, time.Now())
	case known && matters(before, now):
		l.queue.wake(podChanged, time.Now())
	}
}

// matters reports whether a change of a pod on a node may help others.
func matters(before, now placed) bool {
	return before.node != now.node || before.terminating != now.terminating || !maps.Equal(before.pod.Labels, now.pod.Labels) ||
		!slices.Equal(before.needs, now.needs)
}

// podWithout is for pods of this scheduler that have no node. Those with gates wait
// until these are gone.
func (l *loop) podWithout(pod, old *corev1.Pod) {
	if l.assumed[pod.UID] {
		return // its binding is on the way
	}
	if len(pod.Spec.SchedulingGates) > 0 {
		l.queue.remove(pod.UID)
		return
	}
	if node := pod.Status.NominatedNodeName; node != "" && (old == nil || old.Status.NominatedNodeName != node) {
		l.snapshot.Nominate(pod, node)
	}
	changed := old == nil || !maps.Equal(old.Labels, pod.Labels) || !equality.Semantic.DeepEqual(old.Spec, pod.Spec)
	l.queue.set(l.snapshot.inspect(pod), changed, time.Now())
}

// node takes in what became of a node.
func (l *loop) node(d informer.Delta[*corev1.Node]) {
	if d.Type == informer.Deleted {
		l.snapshot.RemoveNode(d.Key.Name)
		l.queue.wake(nodeWent, time.Now())
		return
	}
	if help := l.snapshot.setNode(d.Object()).helps(); help != 0 {
		l.queue.wake(help, time.Now())
	}
}

// namespace takes in what became of a namespace.
func (l *loop) namespace(d informer.Delta[*corev1.Namespace]) {
	if d.Type == informer.Deleted {
		l.snapshot.RemoveNamespace(d.Key.Name)
		return
	}
	if known, there := l.snapshot.namespaces[d.Key.Name]; there && maps.Equal(known, d.Object().Labels) {
		return
	}
	l.snapshot.SetNamespace(d.Key.Name, d.Object().Labels)
	l.queue.wake(labelsMoved, time.Now())
}
