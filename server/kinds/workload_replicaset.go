package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func replicaSetKind() *Kind {
	return &Kind{
		GVK:      appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		Resource: "replicasets", Singular: "replicaset",
		ShortNames: []string{"rs"}, Categories: []string{"all"},
		Namespaced: true,
		New:        newOf[appsv1.ReplicaSet], NewList: newOf[appsv1.ReplicaSetList],
		HasStatus: true, HasGeneration: true,
		Scale: &Scale{
			Get: func(obj runtime.Object) (int32, int32, string) {
				rs := obj.(*appsv1.ReplicaSet)
				return replicasOf(rs.Spec.Replicas), rs.Status.Replicas, selectorText(rs.Spec.Selector)
			},
			Set: func(obj runtime.Object, n int32) { obj.(*appsv1.ReplicaSet).Spec.Replicas = &n },
		},
		Default: each(func(rs *appsv1.ReplicaSet) {
			setDefault(&rs.Spec.Replicas, 1)
			defaultPodSpec(&rs.Spec.Template.Spec)
		}),
		Validate: check(validateReplicaSet),
		ValidateUpdate: checkPair(func(rs, old *appsv1.ReplicaSet) field.ErrorList {
			p := &problems{}
			p.immutable(field.NewPath("spec", "selector"), rs.Spec.Selector, old.Spec.Selector)
			return p.list
		}),
		ValidateStatus: checkPair(func(rs, _ *appsv1.ReplicaSet) field.ErrorList {
			s := rs.Status
			return validateReplicaStatus(replicaStatus{s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas,
				s.AvailableReplicas, s.ObservedGeneration, replicasOf(s.TerminatingReplicas)})
		}),
		Warnings: warn(func(rs, old *appsv1.ReplicaSet) []string {
			return controllerWarnings(rs.Name, &rs.Spec.Template, field.NewPath("spec", "template"), rs.Spec, specOf(old, func(o *appsv1.ReplicaSet) any { return o.Spec }))
		}),
		Columns: replicaColumns(),
		Cells: cells(func(rs *appsv1.ReplicaSet, now metav1.Time) []any {
			names, images := containerCells(rs.Spec.Template.Spec.Containers)
			return []any{rs.Name, int64(replicasOf(rs.Spec.Replicas)), int64(rs.Status.Replicas), int64(rs.Status.ReadyReplicas),
				Age(rs.CreationTimestamp, now), names, images, metav1.FormatLabelSelector(rs.Spec.Selector)}
		}),
	}
}

func replicaColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn(),
		integerColumn("Desired", "Pods that are wanted."),
		integerColumn("Current", "Pods that exist."),
		integerColumn("Ready", "Pods that are ready."),
		ageColumn(), containersColumn(), imagesColumn(), selectorColumn(),
	}
}

func validateReplicaSet(rs *appsv1.ReplicaSet) field.ErrorList {
	p, s, path := &problems{}, &rs.Spec, field.NewPath("spec")
	p.nonNegative(path.Child("replicas"), int64(replicasOf(s.Replicas)))
	p.nonNegative(path.Child("minReadySeconds"), int64(s.MinReadySeconds))
	p.ownSelector(path.Child("selector"), s.Selector, "deployment")
	p.replicaTemplate(path, s.Selector, &s.Template)
	return p.list
}

// replicaTemplate checks selector and template of a Deployment or ReplicaSet
// against each other; path is that of the spec.
func (p *problems) replicaTemplate(path *field.Path, s *metav1.LabelSelector, t *corev1.PodTemplateSpec) {
	if !p.matchesTemplate(path.Child("template"), s, t) {
		p.invalid(path.Child("selector"), s, "invalid label selector")
		return
	}
	p.add(validatePodTemplate(t, path.Child("template"))...)
	p.runsForever(path.Child("template"), t, "ReplicaSet")
}

// replicaStatus is what ReplicaSets and ReplicationControllers report.
type replicaStatus struct {
	replicas, labeled, ready, available int32
	observed                            int64
	terminating                         int32
}

func validateReplicaStatus(s replicaStatus) field.ErrorList {
	p, path := &problems{}, field.NewPath("status")
	labeled, ready := count{"fullyLabeledReplicas", int64(s.labeled)}, count{"readyReplicas", int64(s.ready)}
	available := count{"availableReplicas", int64(s.available)}
	p.statusCounts(path, count{"replicas", int64(s.replicas)}, labeled, ready, available,
		count{"observedGeneration", s.observed}, count{"terminatingReplicas", int64(s.terminating)})
	p.atMost(path, s.replicas, moreThanReplicas, labeled, ready, available)
	p.atMost(path, s.ready, "cannot be greater than readyReplicas", available)
	return p.list
}
