package kinds

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func deploymentKind() *Kind {
	return &Kind{
		GVK:      appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Resource: "deployments", Singular: "deployment",
		ShortNames: []string{"deploy"}, Categories: []string{"all"},
		Namespaced: true,
		New:        newOf[appsv1.Deployment], NewList: newOf[appsv1.DeploymentList],
		HasStatus: true, HasGeneration: true,
		Scale: &Scale{
			Get: func(obj runtime.Object) (int32, int32, string) {
				d := obj.(*appsv1.Deployment)
				return replicasOf(d.Spec.Replicas), d.Status.Replicas, selectorText(d.Spec.Selector)
			},
			Set: func(obj runtime.Object, n int32) { obj.(*appsv1.Deployment).Spec.Replicas = &n },
		},
		Default: each(defaultDeployment),
		// Annotations are copied to ReplicaSets, so they count as well.
		PrepareUpdate: eachPair(func(d, old *appsv1.Deployment) {
			if !equality.Semantic.DeepEqual(d.Annotations, old.Annotations) {
				d.Generation = old.Generation + 1
			}
		}),
		Validate:       check(validateDeployment),
		ValidateUpdate: checkPair(validateDeploymentUpdate),
		ValidateStatus: checkPair(validateDeploymentStatus),
		Warnings: warn(func(d, old *appsv1.Deployment) []string {
			return controllerWarnings(d.Name, &d.Spec.Template, field.NewPath("spec", "template"), d.Spec, specOf(old, func(o *appsv1.Deployment) any { return o.Spec }))
		}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Ready", "Ready pods of those wanted."),
			column("Up-to-date", "Pods made from the current template."),
			column("Available", "Pods that have been ready long enough."),
			ageColumn(), containersColumn(), imagesColumn(), selectorColumn(),
		},
		Cells: cells(deploymentCells),
	}
}

func defaultDeployment(d *appsv1.Deployment) {
	s := &d.Spec
	setDefault(&s.Replicas, 1)
	setEmpty(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setDefault(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setDefault(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setDefault(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	setDefault(&s.RevisionHistoryLimit, 10)
	setDefault(&s.ProgressDeadlineSeconds, 600)
	defaultPodSpec(&s.Template.Spec)
}

func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	p, s, path := &problems{}, &d.Spec, field.NewPath("spec")
	p.nonNegative(path.Child("replicas"), int64(replicasOf(s.Replicas)))
	p.ownSelector(path.Child("selector"), s.Selector, "deployment")
	p.replicaTemplate(path, s.Selector, &s.Template)
	p.deploymentStrategy(path.Child("strategy"), &s.Strategy)
	p.nonNegative(path.Child("minReadySeconds"), int64(s.MinReadySeconds))
	p.nonNegativeIf(path.Child("revisionHistoryLimit"), s.RevisionHistoryLimit)
	if deadline := s.ProgressDeadlineSeconds; deadline != nil {
		p.nonNegative(path.Child("progressDeadlineSeconds"), int64(*deadline))
		if *deadline <= s.MinReadySeconds {
			p.invalid(path.Child("progressDeadlineSeconds"), *deadline, "must be greater than minReadySeconds")
		}
	}
	return p.list
}

func (p *problems) deploymentStrategy(path *field.Path, s *appsv1.DeploymentStrategy) {
	rolling := path.Child("rollingUpdate")
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.RollingUpdate != nil {
			p.forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'")
		}
	case appsv1.RollingUpdateDeploymentStrategyType:
		if s.RollingUpdate == nil {
			p.required(rolling, "this should be defaulted and never be nil")
			return
		}
		p.deploymentRolling(rolling, intOrZero(s.RollingUpdate.MaxUnavailable), intOrZero(s.RollingUpdate.MaxSurge))
	default:
		p.add(field.NotSupported(path, badDeploymentStrategy(s), []appsv1.DeploymentStrategyType{
			appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType,
		}))
	}
}

func (p *problems) deploymentRolling(path *field.Path, unavailable, surge intstr.IntOrString) {
	p.intOrPercent(path.Child("maxUnavailable"), unavailable)
	p.intOrPercent(path.Child("maxSurge"), surge)
	if amountOf(unavailable) == 0 && amountOf(surge) == 0 {
		p.invalid(path.Child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0")
	}
	p.atMostAll(path.Child("maxUnavailable"), unavailable)
}

func badDeploymentStrategy(s *appsv1.DeploymentStrategy) any {
	bad := badStrategy[appsv1.DeploymentStrategyType]{Type: s.Type}
	if r := s.RollingUpdate; r != nil {
		bad.RollingUpdate = struct{ MaxUnavailable, MaxSurge intstr.IntOrString }{intOrZero(r.MaxUnavailable), intOrZero(r.MaxSurge)}
	}
	return bad
}

func validateDeploymentUpdate(d, old *appsv1.Deployment) field.ErrorList {
	p := &problems{}
	p.immutable(field.NewPath("spec", "selector"), d.Spec.Selector, old.Spec.Selector)
	return p.list
}

func validateDeploymentStatus(d, old *appsv1.Deployment) field.ErrorList {
	p, s, path := &problems{}, &d.Status, field.NewPath("status")
	p.statusCounts(path,
		count{"observedGeneration", s.ObservedGeneration}, count{"replicas", int64(s.Replicas)},
		count{"updatedReplicas", int64(s.UpdatedReplicas)}, count{"readyReplicas", int64(s.ReadyReplicas)},
		count{"availableReplicas", int64(s.AvailableReplicas)}, count{"unavailableReplicas", int64(s.UnavailableReplicas)},
		count{"terminatingReplicas", int64(replicasOf(s.TerminatingReplicas))}, count{"collisionCount", int64(replicasOf(s.CollisionCount))})
	p.atMost(path, s.Replicas, moreThanReplicas,
		count{"updatedReplicas", int64(s.UpdatedReplicas)}, count{"readyReplicas", int64(s.ReadyReplicas)},
		count{"availableReplicas", int64(s.AvailableReplicas)})
	p.atMost(path, s.ReadyReplicas, "cannot be greater than readyReplicas", count{"availableReplicas", int64(s.AvailableReplicas)})
	p.notDecremented(s.CollisionCount, old.Status.CollisionCount)
	return p.list
}

func deploymentCells(d *appsv1.Deployment, now metav1.Time) []any {
	names, images := containerCells(d.Spec.Template.Spec.Containers)
	return []any{
		d.Name,
		fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, replicasOf(d.Spec.Replicas)),
		int64(d.Status.UpdatedReplicas), int64(d.Status.AvailableReplicas),
		Age(d.CreationTimestamp, now),
		names, images, selectorText(d.Spec.Selector),
	}
}
