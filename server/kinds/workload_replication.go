package kinds

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func replicationControllerKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("ReplicationController"),
		Resource: "replicationcontrollers", Singular: "replicationcontroller",
		ShortNames: []string{"rc"}, Categories: []string{"all"},
		Namespaced: true,
		New:        newOf[corev1.ReplicationController], NewList: newOf[corev1.ReplicationControllerList],
		HasStatus: true, HasGeneration: true, Orphans: true,
		Scale: &Scale{
			Get: func(obj runtime.Object) (int32, int32, string) {
				rc := obj.(*corev1.ReplicationController)
				return replicasOf(rc.Spec.Replicas), rc.Status.Replicas, labels.SelectorFromSet(rc.Spec.Selector).String()
			},
			Set: func(obj runtime.Object, n int32) { obj.(*corev1.ReplicationController).Spec.Replicas = &n },
		},
		Default:  each(defaultReplicationController),
		Validate: check(validateReplicationController),
		ValidateStatus: checkPair(func(rc, _ *corev1.ReplicationController) field.ErrorList {
			s := rc.Status
			return validateReplicaStatus(replicaStatus{s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas, s.ObservedGeneration, 0})
		}),
		Warnings: warn(func(rc, old *corev1.ReplicationController) []string {
			t := rc.Spec.Template
			if t == nil {
				t = &corev1.PodTemplateSpec{}
			}
			return controllerWarnings(rc.Name, t, field.NewPath("spec", "template"), rc.Spec, specOf(old, func(o *corev1.ReplicationController) any { return o.Spec }))
		}),
		Fields: []string{"status.replicas"},
		FieldSet: fieldSet(func(rc *corev1.ReplicationController) fields.Set {
			return fields.Set{"status.replicas": strconv.Itoa(int(rc.Status.Replicas))}
		}),
		Columns: replicaColumns(),
		Cells: cells(func(rc *corev1.ReplicationController, now metav1.Time) []any {
			var names, images string
			if rc.Spec.Template != nil {
				names, images = containerCells(rc.Spec.Template.Spec.Containers)
			}
			return []any{rc.Name, int64(replicasOf(rc.Spec.Replicas)), int64(rc.Status.Replicas), int64(rc.Status.ReadyReplicas),
				Age(rc.CreationTimestamp, now), names, images, labels.FormatLabels(rc.Spec.Selector)}
		}),
	}
}

// defaultReplicationController takes selector and labels from the template.
func defaultReplicationController(rc *corev1.ReplicationController) {
	setDefault(&rc.Spec.Replicas, 1)
	if rc.Spec.Template == nil {
		return
	}
	if set := rc.Spec.Template.Labels; set != nil {
		if len(rc.Spec.Selector) == 0 {
			rc.Spec.Selector = maps.Clone(set)
		}
		if len(rc.Labels) == 0 {
			rc.Labels = maps.Clone(set)
		}
	}
	defaultPodSpec(&rc.Spec.Template.Spec)
}

func validateReplicationController(rc *corev1.ReplicationController) field.ErrorList {
	p, s, path := &problems{}, &rc.Spec, field.NewPath("spec")
	p.nonNegative(path.Child("minReadySeconds"), int64(s.MinReadySeconds))
	if len(s.Selector) == 0 {
		p.required(path.Child("selector"), "")
	}
	if s.Replicas == nil {
		p.required(path.Child("replicas"), "")
	} else {
		p.nonNegative(path.Child("replicas"), int64(*s.Replicas))
	}
	template := path.Child("template")
	if s.Template == nil {
		p.required(template, "")
		return p.list
	}
	if len(s.Selector) > 0 && !labels.SelectorFromSet(s.Selector).Matches(labels.Set(s.Template.Labels)) {
		p.mismatch(template, s.Template)
	}
	p.add(validatePodTemplate(s.Template, template)...)
	p.runsForever(template, s.Template, "ReplicationController")
	return p.list
}
