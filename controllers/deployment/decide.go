package deployment

import (
	"cmp"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// seen is what there is of a Deployment. Its objects are shared and read-only.
type seen struct {
	deployment *appsv1.Deployment
	sets       []*appsv1.ReplicaSet
	now        time.Time
}

// plan is what is to be done.
type plan struct {
	create *appsv1.ReplicaSet
	update []change
	remove []*appsv1.ReplicaSet
}

// change is a ReplicaSet as it should be, and how many replicas it was to have.
type change struct {
	set *appsv1.ReplicaSet
	was int32
}

func (p plan) nothing() bool { return p.create == nil && len(p.update)+len(p.remove) == 0 }

// part is a ReplicaSet of a Deployment, and how many replicas it is to have.
type part struct {
	set      *appsv1.ReplicaSet
	replicas int32
	// counts says that the Deployment's size is to be noted, although the part's is
	// not changed.
	counts bool
}

func (p *part) was() int32 { return replicasOf(p.set.Spec.Replicas) }

// pods are as many as the part may have now, also if it is yet to shrink.
func (p *part) pods() int32 { return max(p.replicas, p.set.Status.Replicas) }

// available are those that will be left of the available pods when it has shrunk.
func (p *part) available() int32 { return min(p.replicas, p.set.Status.AvailableReplicas) }

// parts are the ReplicaSets of a Deployment: that of its template, which may be nil,
// and the others, oldest first.
type parts struct {
	new *part
	old []*part
}

func (p parts) all() []*part {
	if p.new == nil {
		return p.old
	}
	return append(slices.Clone(p.old), p.new)
}

// active are those that have replicas.
func (p parts) active() []*part {
	return slices.DeleteFunc(slices.Clone(p.all()), func(p *part) bool { return p.replicas == 0 })
}

// settled reports whether the status of each is of its present specification.
func (p parts) settled() bool {
	return !slices.ContainsFunc(p.all(), func(p *part) bool { return !settled(p.set) })
}

func sum(of []*part, what func(*part) int32) (n int32) {
	for _, p := range of {
		n += what(p)
	}
	return n
}

// decide says which ReplicaSets there should be, and how large. Applied to what it
// leads to, it has nothing to say until pods change.
func decide(s seen) plan {
	d := s.deployment
	if d.DeletionTimestamp != nil {
		return plan{}
	}
	all := s.split()
	if d.Spec.Paused || resized(d, all) {
		scale(d, all)
	}
	if d.Spec.Paused {
		return s.plan(all, d.Spec.Paused)
	}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		all = recreate(s, all)
	} else {
		all = roll(s, all)
	}
	return s.plan(all, s.complete(s.counts()))
}

// split tells the ReplicaSet of the Deployment's template from the others. If there
// are two, the older one is it.
func (s seen) split() parts {
	var out parts
	for _, set := range slices.SortedFunc(slices.Values(s.sets), olderFirst) {
		p := &part{set: set, replicas: replicasOf(set.Spec.Replicas)}
		if out.new == nil && sameTemplate(&set.Spec.Template, &s.deployment.Spec.Template) {
			out.new = p
		} else {
			out.old = append(out.old, p)
		}
	}
	return out
}

func olderFirst(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// sameTemplate compares templates; the hash is only in those of ReplicaSets.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	return equality.Semantic.DeepEqual(withoutHash(a), withoutHash(b))
}

// plan is what makes the parts what they are to be. If it is time to tidy, old
// ReplicaSets beyond the history's limit go.
func (s seen) plan(all parts, tidy bool) plan {
	var out plan
	for _, p := range all.all() {
		set := s.wanted(p, p == all.new)
		switch {
		case p.set.UID == "":
			out.create = set
		case !same(set, p.set):
			out.update = append(out.update, change{set, p.was()})
		}
	}
	if tidy {
		out.remove = s.superfluous(all.old)
	}
	return out
}

// same compares what a plan may change.
func same(a, b *appsv1.ReplicaSet) bool {
	return replicasOf(a.Spec.Replicas) == replicasOf(b.Spec.Replicas) && a.Spec.MinReadySeconds == b.Spec.MinReadySeconds &&
		maps.Equal(a.Annotations, b.Annotations)
}

// wanted is a part's ReplicaSet as it should be.
func (s seen) wanted(p *part, isNew bool) *appsv1.ReplicaSet {
	set := p.set.DeepCopy()
	if isNew {
		set.Spec.MinReadySeconds = s.deployment.Spec.MinReadySeconds
		s.annotate(set)
	}
	if p.replicas != p.was() || p.counts || set.UID == "" {
		set.Spec.Replicas = &p.replicas
		noteSize(set, s.deployment)
	}
	return set
}

// superfluous are the oldest of the ReplicaSets beyond the history's limit, as far
// as they have no pods.
func (s seen) superfluous(old []*part) []*appsv1.ReplicaSet {
	limit := s.deployment.Spec.RevisionHistoryLimit
	var sets []*appsv1.ReplicaSet
	for _, p := range old {
		if p.set.DeletionTimestamp == nil {
			sets = append(sets, p.set)
		}
	}
	if limit == nil || len(sets) <= int(*limit) {
		return nil
	}
	slices.SortStableFunc(sets, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	return slices.DeleteFunc(sets[:len(sets)-int(*limit)], func(set *appsv1.ReplicaSet) bool {
		return !settled(set) || replicasOf(set.Spec.Replicas) != 0 || set.Status.Replicas != 0
	})
}

// settled reports whether the status of a ReplicaSet is of its present specification.
func settled(set *appsv1.ReplicaSet) bool { return set.Status.ObservedGeneration >= set.Generation }

func replicasOf(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
