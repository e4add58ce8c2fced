package kinds

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func daemonSetKind() *Kind {
	return &Kind{
		GVK:      appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		Resource: "daemonsets", Singular: "daemonset",
		ShortNames: []string{"ds"}, Categories: []string{"all"},
		Namespaced: true,
		New:        newOf[appsv1.DaemonSet], NewList: newOf[appsv1.DaemonSetList],
		HasStatus: true, HasGeneration: true,
		Default: each(defaultDaemonSet),
		PrepareCreate: each(func(ds *appsv1.DaemonSet) {
			setTemplateGeneration(ds, max(1, templateGeneration(ds)))
		}),
		PrepareUpdate: eachPair(func(ds, old *appsv1.DaemonSet) {
			n := templateGeneration(old)
			if !equality.Semantic.DeepEqual(ds.Spec.Template, old.Spec.Template) {
				n++
			}
			setTemplateGeneration(ds, n)
		}),
		PrepareStatus: eachPair(func(ds, old *appsv1.DaemonSet) { setTemplateGeneration(ds, templateGeneration(old)) }),
		Validate:      check(validateDaemonSet),
		ValidateUpdate: checkPair(func(ds, old *appsv1.DaemonSet) field.ErrorList {
			p := &problems{}
			p.immutable(field.NewPath("spec", "selector"), ds.Spec.Selector, old.Spec.Selector)
			return p.list
		}),
		ValidateStatus: checkPair(validateDaemonSetStatus),
		Warnings: warn(func(ds, old *appsv1.DaemonSet) []string {
			if old != nil && equality.Semantic.DeepEqual(ds.Spec.Template, old.Spec.Template) {
				return nil
			}
			return podTemplateWarnings(&ds.Spec.Template, field.NewPath("spec", "template"))
		}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			integerColumn("Desired", "Nodes that should run a pod."),
			integerColumn("Current", "Nodes that run a pod and should."),
			integerColumn("Ready", "Nodes whose pod is ready."),
			integerColumn("Up-to-date", "Nodes whose pod is made from the current template."),
			integerColumn("Available", "Nodes whose pod has been ready long enough."),
			column("Node Selector", "Labels of the nodes that should run a pod."),
			ageColumn(), containersColumn(), imagesColumn(), selectorColumn(),
		},
		Cells: cells(daemonSetCells),
	}
}

// templateGeneration counts the changes of the pod template; it is kept in an
// annotation, which users cannot set.
func templateGeneration(ds *appsv1.DaemonSet) int64 {
	n, _ := strconv.ParseInt(ds.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	return n
}

func setTemplateGeneration(ds *appsv1.DaemonSet, n int64) {
	annotations := maps.Clone(ds.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(n, 10)
	ds.Annotations = annotations
}

func defaultDaemonSet(ds *appsv1.DaemonSet) {
	u := &ds.Spec.UpdateStrategy
	setEmpty(&u.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if u.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setDefault(&u.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setDefault(&u.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setDefault(&u.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	setDefault(&ds.Spec.RevisionHistoryLimit, 10)
	defaultPodSpec(&ds.Spec.Template.Spec)
}

func validateDaemonSet(ds *appsv1.DaemonSet) field.ErrorList {
	p, s, path := &problems{}, &ds.Spec, field.NewPath("spec")
	template := path.Child("template")
	p.add(metavalidation.ValidateLabelSelector(s.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
	if sel, err := metav1.LabelSelectorAsSelector(s.Selector); err == nil && !sel.Matches(labels.Set(s.Template.Labels)) {
		p.mismatch(template, &s.Template)
	}
	if s.Selector != nil && len(s.Selector.MatchLabels)+len(s.Selector.MatchExpressions) == 0 {
		p.invalid(path.Child("selector"), s.Selector, "empty selector is invalid for daemonset")
	}
	p.add(validatePodTemplate(&s.Template, template)...)
	p.runsForever(template, &s.Template, "DaemonSet")
	p.nonNegative(path.Child("minReadySeconds"), int64(s.MinReadySeconds))
	p.nonNegative(path.Child("templateGeneration"), templateGeneration(ds))
	p.daemonStrategy(path.Child("updateStrategy"), &s.UpdateStrategy)
	p.nonNegativeIf(path.Child("revisionHistoryLimit"), s.RevisionHistoryLimit)
	return p.list
}

func (p *problems) daemonStrategy(path *field.Path, u *appsv1.DaemonSetUpdateStrategy) {
	switch u.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
	case appsv1.RollingUpdateDaemonSetStrategyType:
		if u.RollingUpdate == nil {
			p.required(path.Child("rollingUpdate"), "")
			return
		}
		p.daemonRolling(path.Child("rollingUpdate"), intOrZero(u.RollingUpdate.MaxUnavailable), intOrZero(u.RollingUpdate.MaxSurge))
	default:
		p.add(field.NotSupported(path, badDaemonStrategy(u), []appsv1.DaemonSetUpdateStrategyType{
			appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType,
		}))
	}
}

func (p *problems) daemonRolling(path *field.Path, unavailable, surge intstr.IntOrString) {
	p.intOrPercent(path.Child("maxUnavailable"), unavailable)
	p.intOrPercent(path.Child("maxSurge"), surge)
	p.atMostAll(path.Child("maxUnavailable"), unavailable)
	p.atMostAll(path.Child("maxSurge"), surge)
	switch down, up := amountOf(unavailable) != 0, amountOf(surge) != 0; {
	case down && up:
		p.invalid(path.Child("maxSurge"), surge, "may not be set when maxUnavailable is non-zero")
	case !down && !up:
		p.required(path.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0")
	}
}

func badDaemonStrategy(u *appsv1.DaemonSetUpdateStrategy) any {
	bad := badStrategy[appsv1.DaemonSetUpdateStrategyType]{Type: u.Type}
	if r := u.RollingUpdate; r != nil {
		bad.RollingUpdate = struct{ MaxUnavailable, MaxSurge intstr.IntOrString }{intOrZero(r.MaxUnavailable), intOrZero(r.MaxSurge)}
	}
	return bad
}

func validateDaemonSetStatus(ds, old *appsv1.DaemonSet) field.ErrorList {
	p, s := &problems{}, &ds.Status
	p.statusCounts(field.NewPath("status"),
		count{"currentNumberScheduled", int64(s.CurrentNumberScheduled)}, count{"numberMisscheduled", int64(s.NumberMisscheduled)},
		count{"desiredNumberScheduled", int64(s.DesiredNumberScheduled)}, count{"numberReady", int64(s.NumberReady)},
		count{"observedGeneration", s.ObservedGeneration}, count{"updatedNumberScheduled", int64(s.UpdatedNumberScheduled)},
		count{"numberAvailable", int64(s.NumberAvailable)}, count{"numberUnavailable", int64(s.NumberUnavailable)},
		count{"collisionCount", int64(replicasOf(s.CollisionCount))})
	p.notDecremented(s.CollisionCount, old.Status.CollisionCount)
	return p.list
}

func daemonSetCells(ds *appsv1.DaemonSet, now metav1.Time) []any {
	names, images := containerCells(ds.Spec.Template.Spec.Containers)
	s := ds.Status
	return []any{
		ds.Name, int64(s.DesiredNumberScheduled), int64(s.CurrentNumberScheduled), int64(s.NumberReady),
		int64(s.UpdatedNumberScheduled), int64(s.NumberAvailable), labels.FormatLabels(ds.Spec.Template.Spec.NodeSelector),
		Age(ds.CreationTimestamp, now), names, images, metav1.FormatLabelSelector(ds.Spec.Selector),
	}
}
