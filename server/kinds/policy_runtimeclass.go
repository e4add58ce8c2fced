package kinds

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func runtimeClassKind() *Kind {
	return &Kind{
		GVK:      nodev1.SchemeGroupVersion.WithKind("RuntimeClass"),
		Resource: "runtimeclasses",
		Singular: "runtimeclass",
		New:      newOf[nodev1.RuntimeClass],
		NewList:  newOf[nodev1.RuntimeClassList],

		CreateOnUpdate: true,
		NeedsRevision:  true,

		Default: each(func(c *nodev1.RuntimeClass) {
			if c.Overhead != nil {
				roundUp(c.Overhead.PodFixed)
			}
		}),

		Validate:       check(validateRuntimeClass),
		ValidateUpdate: checkPair(validateRuntimeClassUpdate),
		Warnings:       warn(warnRuntimeClass),

		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Handler", "The configuration of the container runtime that runs the pods."),
			ageColumn(),
		},
		Cells: cells(func(c *nodev1.RuntimeClass, now metav1.Time) []any {
			return []any{c.Name, c.Handler, Age(c.CreationTimestamp, now)}
		}),
	}
}

func validateRuntimeClass(c *nodev1.RuntimeClass) field.ErrorList {
	var p problems
	p.named(field.NewPath("handler"), c.Handler, func(s string) []string { return apivalidation.NameIsDNSLabel(s, false) })
	if c.Overhead != nil {
		overhead := corev1.ResourceRequirements{Limits: c.Overhead.PodFixed}
		pod := newPodChecker(&corev1.PodSpec{}, &metav1.ObjectMeta{}, nil)
		pod.checkRequirements(&overhead, field.NewPath("overhead"), pod.checkContainerResource)
		p.add(pod.list...)
	}
	if c.Scheduling != nil {
		path := field.NewPath("scheduling")
		p.add(metav1validation.ValidateLabels(c.Scheduling.NodeSelector, path.Child("nodeSelector"))...)
		p.add(validateTolerations(c.Scheduling.Tolerations, path.Child("tolerations"))...)
		validateToleratedOnce(&p, c.Scheduling.Tolerations, path.Child("tolerations"))
	}
	return p.list
}

func validateToleratedOnce(p *problems, tolerations []corev1.Toleration, path *field.Path) {
	before := map[corev1.Toleration]bool{}
	for i, t := range tolerations {
		key := t
		key.TolerationSeconds = nil
		if before[key] {
			p.duplicate(path.Index(i), shownToleration(t))
		}
		before[key] = true
	}
}

// formerNodeLabels are labels of nodes that have a new name.
var formerNodeLabels = map[string]string{
	corev1.LabelFailureDomainBetaRegion: `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
	corev1.LabelFailureDomainBetaZone:   `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
	corev1.LabelInstanceType:            `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
	"beta.kubernetes.io/arch":           `deprecated since v1.14; use "kubernetes.io/arch" instead`,
	"beta.kubernetes.io/os":             `deprecated since v1.14; use "kubernetes.io/os" instead`,
}

func warnRuntimeClass(c, _ *nodev1.RuntimeClass) []string {
	if c.Scheduling == nil {
		return nil
	}
	var warnings []string
	for _, label := range slices.Sorted(maps.Keys(c.Scheduling.NodeSelector)) {
		if advice, former := formerNodeLabels[label]; former {
			warnings = append(warnings, fmt.Sprintf("%s: %s", field.NewPath("scheduling", "nodeSelector"), advice))
		}
	}
	return warnings
}

func validateRuntimeClassUpdate(c, old *nodev1.RuntimeClass) field.ErrorList {
	return apivalidation.ValidateImmutableField(c.Handler, old.Handler, field.NewPath("handler"))
}
