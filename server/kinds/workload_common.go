package kinds

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What the controllers of pods have in common: selectors, templates, replica
// counts, rolling updates.

func containersColumn() metav1.TableColumnDefinition {
	return wideColumn("Containers", "Names of the template's containers.")
}

func imagesColumn() metav1.TableColumnDefinition {
	return wideColumn("Images", "Images of the template's containers.")
}

func selectorColumn() metav1.TableColumnDefinition {
	return wideColumn("Selector", "Labels of the pods that belong to the object.")
}

// containerCells are the names and the images of containers.
func containerCells(containers []corev1.Container) (names, images string) {
	n, i := make([]string, len(containers)), make([]string, len(containers))
	for at, c := range containers {
		n[at], i[at] = c.Name, c.Image
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

// selectorText is a label selector as the scale subresource shows it.
func selectorText(s *metav1.LabelSelector) string {
	sel, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "<invalid>"
	}
	return sel.String()
}

// replicasOf is what p points to, 0 for nil.
func replicasOf(p *int32) int32 {
	if p == nil {
		return 0
	}
	return *p
}

// immutable checks that a field was not changed.
func (p *problems) immutable(path *field.Path, now, before any) {
	p.add(apivalidation.ValidateImmutableField(now, before, path)...)
}

// nonNegativeIf checks a number that may be left out.
func (p *problems) nonNegativeIf(path *field.Path, n *int32) {
	if n != nil {
		p.nonNegative(path, int64(*n))
	}
}

// ownSelector checks the selector of a controller: there, well formed, not empty.
func (p *problems) ownSelector(path *field.Path, s *metav1.LabelSelector, owner string) {
	if s == nil {
		p.required(path, "")
		return
	}
	p.add(metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, path)...)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		p.invalid(path, s, "empty selector is invalid for "+owner)
	}
}

// matchesTemplate checks that pods made from the template would be selected. An
// empty selector, which is an error of its own, is not told twice; no selector
// at all selects nothing. It reports whether the selector could be understood.
func (p *problems) matchesTemplate(path *field.Path, s *metav1.LabelSelector, t *corev1.PodTemplateSpec) bool {
	sel, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return false
	}
	if !sel.Empty() && !sel.Matches(labels.Set(t.Labels)) {
		p.mismatch(path, t)
	}
	return true
}

func (p *problems) mismatch(path *field.Path, t *corev1.PodTemplateSpec) {
	p.invalid(path.Child("metadata", "labels"), t.Labels, "`selector` does not match template `labels`")
}

// runsForever checks the template of a controller whose pods are always
// restarted; kind is named in the error.
func (p *problems) runsForever(path *field.Path, t *corev1.PodTemplateSpec, kind string) {
	if t.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		p.add(field.NotSupported(path.Child("spec", "restartPolicy"), t.Spec.RestartPolicy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		p.forbidden(path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported")
	}
}

// count is a number in a status.
type count struct {
	name  string
	value int64
}

// statusCounts checks that no count is negative.
func (p *problems) statusCounts(path *field.Path, counts ...count) {
	for _, c := range counts {
		p.nonNegative(path.Child(c.name), c.value)
	}
}

// atMost checks counts against the one they are part of.
func (p *problems) atMost(path *field.Path, whole int32, detail string, counts ...count) {
	for _, c := range counts {
		if c.value > int64(whole) {
			p.invalid(path.Child(c.name), int32(c.value), detail)
		}
	}
}

const moreThanReplicas = "cannot be greater than status.replicas"

// notDecremented checks the collision count of a status, which only grows.
func (p *problems) notDecremented(now, before *int32) {
	if before != nil && (now == nil || *now < *before) {
		p.invalid(field.NewPath("status", "collisionCount"), replicasOf(now), "cannot be decremented")
	}
}

// intOrPercent checks a non-negative number or percentage.
func (p *problems) intOrPercent(path *field.Path, v intstr.IntOrString) {
	switch v.Type {
	case intstr.String:
		p.invalid(path, v, validation.IsValidPercent(v.StrVal)...)
	case intstr.Int:
		p.nonNegative(path, int64(v.IntVal))
	default:
		p.invalid(path, v, "must be an integer or percentage (e.g '5%%')")
	}
}

// atMostAll checks that a percentage is not above 100.
func (p *problems) atMostAll(path *field.Path, v intstr.IntOrString) {
	if n, ok := percentOf(v); ok && n > 100 {
		p.invalid(path, v, "must not be greater than 100%")
	}
}

func percentOf(v intstr.IntOrString) (int, bool) {
	if v.Type != intstr.String || len(validation.IsValidPercent(v.StrVal)) > 0 {
		return 0, false
	}
	n, _ := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
	return n, true
}

// amountOf is the number before the percent sign, or the number itself; 0 when
// there is none.
func amountOf(v intstr.IntOrString) int {
	if n, ok := percentOf(v); ok {
		return n
	}
	return v.IntValue()
}

func intOrZero(v *intstr.IntOrString) intstr.IntOrString {
	if v == nil {
		return intstr.IntOrString{}
	}
	return *v
}

// badStrategy is how an update strategy is quoted in errors: with the names of
// its Go fields.
type badStrategy[T ~string] struct {
	Type          T
	RollingUpdate any
}

// controllerWarnings are those about a new name, and about a template whenever
// the spec around it changed; was is nil on create.
func controllerWarnings(name string, t *corev1.PodTemplateSpec, path *field.Path, spec, was any) []string {
	if was == nil {
		return append(podNameWarning(name), podTemplateWarnings(t, path)...)
	}
	if equality.Semantic.DeepEqual(spec, was) {
		return nil
	}
	return podTemplateWarnings(t, path)
}

// specOf is the spec of old, or nil when there is no old object.
func specOf[T any](old *T, spec func(*T) any) any {
	if old == nil {
		return nil
	}
	return spec(old)
}

// podNameWarning tells of names that make bad host names.
func podNameWarning(name string) []string {
	if msgs := validation.IsDNS1123Label(name); len(msgs) != 0 {
		return []string{fmt.Sprintf("metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: %v", msgs)}
	}
	return nil
}
