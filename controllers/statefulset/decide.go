package statefulset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/even-keel/evenkeel/controllers/pods"
	"github.com/even-keel/evenkeel/controllers/revision"
)

// seen is what there is of a StatefulSet. Its objects are shared and read-only.
type seen struct {
	set *appsv1.StatefulSet
	// pods are its own, with an ordinal each.
	pods []*corev1.Pod
	// claims are those of the pods that there are or should be, by name.
	claims map[string]*corev1.PersistentVolumeClaim
	// update names the revision of the set's template, current the one from which the
	// last update began, whose template is currentTemplate.
	update, current string
	currentTemplate *corev1.PodTemplateSpec
	history         revision.History
	collisions      int32
	now             time.Time
}

// plan is what is to be done: first to claims, then to pods.
type plan struct {
	// supply are claims that pods lack.
	supply []member
	// own are claims as they should be, with other owners.
	own []*corev1.PersistentVolumeClaim
	// label are pods that lack the labels which tell who they are.
	label []*corev1.Pod
	// create are pods to be made, with the claims to be made before.
	create []member
	remove []*corev1.Pod
}

// member is a pod, and claims for it.
type member struct {
	pod    *corev1.Pod
	claims []*corev1.PersistentVolumeClaim
}

func (p plan) nothing() bool {
	return len(p.supply)+len(p.own)+len(p.label)+len(p.create)+len(p.remove) == 0
}

// decide says what the next step is. In an ordered set, one pod at a time is made, when
// all before it are up; one at a time goes when there are too many, from the last; and
// nothing is updated before there are as many as there should be, all up.
func decide(s seen) plan {
	var p plan
	if s.set.DeletionTimestamp != nil {
		return p
	}
	replicas, condemned := s.split()
	s.tend(&p, replicas, condemned)
	if s.fill(&p, replicas) && s.shrink(&p, condemned) {
		s.roll(&p, replicas)
	}
	return p
}

// fill has missing pods be made and those that have ended go. It is false if something
// has to happen before anything else is done.
func (s seen) fill(p *plan, replicas []*corev1.Pod) bool {
	for i, pod := range replicas {
		switch {
		case pod == nil:
			s.make(p, s.start()+i)
		case pods.Ended(pod) && pod.DeletionTimestamp == nil:
			p.remove = append(p.remove, pod)
		}
		if s.ordered() && !s.up(pod) {
			return false
		}
	}
	return true
}

// make has a pod be made, unless a claim of its name is about to go.
func (s seen) make(p *plan, ordinal int) {
	pod := s.newPod(ordinal)
	if claims, ok := s.lacking(pod, ordinal); ok {
		p.create = append(p.create, member{pod, claims})
	}
}

// shrink has pods go of which there are too many. It is false while an ordered set has
// such pods.
func (s seen) shrink(p *plan, condemned []*corev1.Pod) bool {
	if !s.ordered() {
		for _, pod := range condemned {
			if pod.DeletionTimestamp == nil {
				p.remove = append(p.remove, pod)
			}
		}
		return true
	}
	if len(condemned) == 0 {
		return true
	}
	// One that may yet get ready waits for others that may: they could need it.
	last := condemned[0]
	if last.DeletionTimestamp == nil && (s.up(last) || pods.Ended(last) || !slices.ContainsFunc(condemned[1:], s.hopeful)) {
		p.remove = append(p.remove, last)
	}
	return false
}

// hopeful reports whether a pod is down, but may get up.
func (s seen) hopeful(p *corev1.Pod) bool { return !s.up(p) && !pods.Ended(p) }

// roll has pods of other revisions go, from the last to the partition, as long as not
// too many are down. Those that are down already do not count.
func (s seen) roll(p *plan, replicas []*corev1.Pod) {
	if s.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return
	}
	down := 0
	for _, pod := range replicas {
		if !s.up(pod) {
			down++
		}
	}
	partition, most := s.partition(), s.maxUnavailable()
	for i, pod := range slices.Backward(replicas) {
		if i < partition {
			return
		}
		if pod == nil || pod.DeletionTimestamp != nil || pods.Ended(pod) || revisionOf(pod) == s.update {
			continue
		}
		switch {
		case !s.up(pod):
			p.remove = append(p.remove, pod)
		case down < most:
			p.remove = append(p.remove, pod)
			down++
		}
	}
}

// split returns the pods that there should be by their place, nil where one is missing,
// and the others, last first.
func (s seen) split() (replicas, condemned []*corev1.Pod) {
	replicas = make([]*corev1.Pod, s.wanted())
	for _, pod := range s.pods {
		if i := ordinalOf(s.set, pod) - s.start(); i >= 0 && i < len(replicas) {
			replicas[i] = pod
		} else {
			condemned = append(condemned, pod)
		}
	}
	slices.SortFunc(condemned, func(a, b *corev1.Pod) int { return ordinalOf(s.set, b) - ordinalOf(s.set, a) })
	return replicas, condemned
}

func (s seen) ordered() bool {
	return s.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

func (s seen) wanted() int {
	if s.set.Spec.Replicas == nil {
		return 1
	}
	return int(*s.set.Spec.Replicas)
}

func (s seen) start() int {
	if s.set.Spec.Ordinals == nil {
		return 0
	}
	return int(s.set.Spec.Ordinals.Start)
}

// partition is how many pods, from the first, keep the current revision.
func (s seen) partition() int {
	u := s.set.Spec.UpdateStrategy
	if u.Type == appsv1.OnDeleteStatefulSetStrategyType || u.RollingUpdate == nil || u.RollingUpdate.Partition == nil {
		return 0
	}
	return int(*u.RollingUpdate.Partition)
}

// maxUnavailable is how many pods may be down for an update: at least one.
func (s seen) maxUnavailable() int {
	u := s.set.Spec.UpdateStrategy.RollingUpdate
	if u == nil || u.MaxUnavailable == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(u.MaxUnavailable, s.wanted(), false)
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// up reports whether a pod has been running and ready for long enough, and is to stay.
func (s seen) up(p *corev1.Pod) bool {
	return p != nil && p.DeletionTimestamp == nil && running(p) && pods.Available(p, s.set.Spec.MinReadySeconds, s.now)
}

func running(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning && pods.Ready(p) }
