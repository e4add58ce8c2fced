package kinds

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const podUpdatable = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," +
	"`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// validatePodUpdate checks an update of the pod itself: all but a few fields of
// the spec stay as they are.
func validatePodUpdate(pod, old *corev1.Pod) field.ErrorList {
	c := newPodChecker(&pod.Spec, &pod.ObjectMeta, field.NewPath("spec"))
	c.checkAnnotationUpdates(pod, old)
	if !c.checkImages(pod.Spec.Containers, old.Spec.Containers, "containers") ||
		!c.checkImages(pod.Spec.InitContainers, old.Spec.InitContainers, "initContainers") ||
		!c.checkDeadline(old.Spec.ActiveDeadlineSeconds) {
		return c.list
	}
	c.checkTolerationUpdates(old.Spec.Tolerations)
	c.checkGateUpdates(old.Spec.SchedulingGates)
	before := updated(&pod.Spec, &old.Spec)
	if len(old.Spec.SchedulingGates) > 0 {
		c.checkGated(before, &old.Spec)
	}
	if !equality.Semantic.DeepEqual(*before, old.Spec) {
		c.forbidden(c.path, fmt.Sprintf("pod updates may not change fields other than %s\n%v", podUpdatable, diff.Diff(old.Spec, *before)))
	}
	return c.list
}

// updated is spec with the fields that may change as they were in old.
func updated(spec, old *corev1.PodSpec) *corev1.PodSpec {
	s := spec.DeepCopy()
	for i := range s.Containers {
		s.Containers[i].Image = old.Containers[i].Image
	}
	for i := range s.InitContainers {
		s.InitContainers[i].Image = old.InitContainers[i].Image
	}
	s.ActiveDeadlineSeconds, s.Tolerations, s.SchedulingGates = old.ActiveDeadlineSeconds, old.Tolerations, old.SchedulingGates
	if now, then := s.TerminationGracePeriodSeconds, old.TerminationGracePeriodSeconds; then != nil && *then < 0 && now != nil && *now == 1 {
		s.TerminationGracePeriodSeconds = then
	}
	return s
}

// checkAnnotationUpdates keeps the annotations that are part of a pod's nature.
func (c *podChecker) checkAnnotationUpdates(pod, old *corev1.Pod) {
	path := field.NewPath("metadata", "annotations")
	armor := func(key string) bool {
		return strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix)
	}
	for key, was := range old.Annotations {
		if is, kept := pod.Annotations[key]; kept && is == was {
			continue
		}
		if armor(key) {
			c.forbidden(path.Key(key), "may not remove or update AppArmor annotations")
		}
		if key == corev1.MirrorPodAnnotationKey {
			c.forbidden(path.Key(key), "may not remove or update mirror pod annotation")
		}
	}
	for key := range pod.Annotations {
		if _, was := old.Annotations[key]; was {
			continue
		}
		if armor(key) {
			c.forbidden(path.Key(key), "may not add AppArmor annotations")
		}
		if key == corev1.MirrorPodAnnotationKey {
			c.forbidden(path.Key(key), "may not add mirror pod annotation")
		}
	}
	c.checkAnnotations(pod.Annotations, path)
}

// checkImages reports whether there are as many containers as before.
func (c *podChecker) checkImages(now, before []corev1.Container, name string) bool {
	path := c.path.Child(name)
	if len(now) != len(before) {
		c.forbidden(path, "pod updates may not add or remove containers")
		return false
	}
	for i := range now {
		c.nonEmpty(path.Index(i).Child("image"), now[i].Image)
		c.checkImageSpaces(&now[i], path.Index(i))
	}
	return true
}

// checkDeadline lets a deadline be set or brought forward. It reports whether
// the rest is worth looking at.
func (c *podChecker) checkDeadline(before *int64) bool {
	now, path := c.spec.ActiveDeadlineSeconds, c.path.Child("activeDeadlineSeconds")
	switch {
	case now == nil && before != nil:
		c.invalid(path, now, "must not update from a positive integer to nil value")
	case now == nil:
	case *now < 0 || *now > math.MaxInt32:
		c.invalid(path, *now, validation.InclusiveRangeError(0, math.MaxInt32))
		return false
	case before != nil && *before < *now:
		c.invalid(path, *now, "must be less than or equal to previous value")
		return false
	}
	return true
}

// checkTolerationUpdates lets tolerations be added, and their seconds change.
func (c *podChecker) checkTolerationUpdates(before []corev1.Toleration) {
	path := c.path.Child("tolerations")
	for _, was := range before {
		kept := slices.ContainsFunc(c.spec.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == was.Key && t.Operator == was.Operator && t.Value == was.Value && t.Effect == was.Effect
		})
		if !kept {
			c.forbidden(path, "existing toleration can not be modified except its tolerationSeconds")
			return
		}
	}
	c.add(validateTolerations(c.spec.Tolerations, path)...)
}

func (c *podChecker) checkGateUpdates(before []corev1.PodSchedulingGate) {
	for i, g := range c.spec.SchedulingGates {
		if !slices.Contains(before, g) {
			c.forbidden(c.path.Child("schedulingGates").Index(i).Child("name"),
				fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", g.Name))
		}
	}
}

// checkGated lets a pod that waits at a gate be made harder to place: now gets
// back what may change so.
func (c *podChecker) checkGated(now, old *corev1.PodSpec) {
	for k, v := range old.NodeSelector {
		if is, kept := now.NodeSelector[k]; !kept || is != v {
			c.invalid(c.path.Child("nodeSelector"), now.NodeSelector, "only additions to spec.nodeSelector are allowed (no mutations or deletions)")
			break
		}
	}
	now.NodeSelector = old.NodeSelector
	var before, after *corev1.NodeAffinity
	if old.Affinity != nil {
		before = old.Affinity.NodeAffinity
	}
	if now.Affinity != nil {
		after = now.Affinity.NodeAffinity
	}
	if equality.Semantic.DeepEqual(before, after) {
		return
	}
	c.checkGatedAffinity(after, before)
	setDefault(&now.Affinity, corev1.Affinity{})
	now.Affinity.NodeAffinity = before
	if old.Affinity == nil && *now.Affinity == (corev1.Affinity{}) {
		now.Affinity = nil
	}
}

func (c *podChecker) checkGatedAffinity(now, before *corev1.NodeAffinity) {
	was, is := requiredTerms(before), requiredTerms(now)
	path := c.path.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	if len(was) == 0 {
		return
	}
	if len(was) != len(is) {
		c.invalid(path, is, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
		return
	}
	for i := range was {
		if !narrows(is[i], was[i]) {
			c.invalid(path.Index(i), is[i], "only additions are allowed (no mutations or deletions)")
		}
	}
}

func requiredTerms(a *corev1.NodeAffinity) []corev1.NodeSelectorTerm {
	if a == nil || a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// narrows reports whether a term only gained requirements. An empty term matches
// nothing, so that any requirement would widen it.
func narrows(now, before corev1.NodeSelectorTerm) bool {
	if len(before.MatchExpressions)+len(before.MatchFields) == 0 {
		return len(now.MatchExpressions)+len(now.MatchFields) == 0
	}
	starts := func(list, with []corev1.NodeSelectorRequirement) bool {
		return len(list) >= len(with) && equality.Semantic.DeepEqual(list[:len(with)], with)
	}
	return starts(now.MatchExpressions, before.MatchExpressions) && starts(now.MatchFields, before.MatchFields)
}
