package kinds

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// preparePod sets what admission and the registry set on a new pod. What an
// earlier stage of admission has set stays.
func preparePod(pod *corev1.Pod) {
	preparePriority(&pod.Spec)
	tolerateForAWhile(&pod.Spec)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	if len(pod.Spec.SchedulingGates) > 0 {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: pod.CreationTimestamp,
			Reason:  corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
	applyLabelKeys(pod)
	appArmorFromAnnotations(pod)
	pod.Status.QOSClass = qosClass(&pod.Spec)
}

// preparePriority knows no priority but the default one and those that every
// cluster has; the others are for admission to look up before.
func preparePriority(spec *corev1.PodSpec) {
	var priority int32
	switch spec.PriorityClassName {
	case "":
	case "system-cluster-critical":
		priority = 2000000000
	case "system-node-critical":
		priority = 2000001000
	default:
		return
	}
	setDefault(&spec.Priority, priority)
	setDefault(&spec.PreemptionPolicy, corev1.PreemptLowerPriority)
}

// tolerateForAWhile lets a pod stay on a node that does not answer.
func tolerateForAWhile(spec *corev1.PodSpec) {
	const seconds = int64(300)
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := false
		for _, t := range spec.Tolerations {
			tolerated = tolerated || (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}
		if tolerated {
			continue
		}
		s := seconds
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &s})
	}
}

func preparePodUpdate(pod, old *corev1.Pod) {
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = old.Spec.Priority
	}
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = old.Spec.PreemptionPolicy
	}
	tolerateForAWhile(&pod.Spec)
}

// applyLabelKeys adds to selectors the labels that they take from the pod.
func applyLabelKeys(pod *corev1.Pod) {
	add := func(s *metav1.LabelSelector, keys []string, op metav1.LabelSelectorOperator) {
		for _, k := range keys {
			if v, has := pod.Labels[k]; has && s != nil {
				s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: k, Operator: op, Values: []string{v}})
			}
		}
	}
	for t := range affinityTerms(pod.Spec.Affinity) {
		add(t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn)
		add(t.LabelSelector, t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		add(c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
}

// affinityTerms yields every term that says which pods to be near to or far from.
func affinityTerms(a *corev1.Affinity) func(yield func(*corev1.PodAffinityTerm) bool) {
	var required []corev1.PodAffinityTerm
	var preferred []corev1.WeightedPodAffinityTerm
	if a != nil && a.PodAffinity != nil {
		required = append(required, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		preferred = append(preferred, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if a != nil && a.PodAntiAffinity != nil {
		required = append(required, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		preferred = append(preferred, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	return func(yield func(*corev1.PodAffinityTerm) bool) {
		for i := range required {
			if !yield(&required[i]) {
				return
			}
		}
		for i := range preferred {
			if !yield(&preferred[i].PodAffinityTerm) {
				return
			}
		}
	}
}

// appArmorFromAnnotations writes profiles that are given the old way as fields.
func appArmorFromAnnotations(pod *corev1.Pod) {
	if pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows {
		return
	}
	var ofPod *corev1.AppArmorProfile
	if pod.Spec.SecurityContext != nil {
		ofPod = pod.Spec.SecurityContext.AppArmorProfile
	}
	for c := range containersOf(&pod.Spec) {
		v, has := pod.Annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name]
		if !has || c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil {
			continue
		}
		profile := appArmorProfile(v)
		if profile == nil || sameProfile(profile, ofPod) {
			continue
		}
		setDefault(&c.SecurityContext, corev1.SecurityContext{})
		c.SecurityContext.AppArmorProfile = profile
	}
}

// appArmorProfile is nil for an annotation that says nothing a field could.
func appArmorProfile(annotation string) *corev1.AppArmorProfile {
	switch annotation {
	case corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	}
	local, ok := strings.CutPrefix(annotation, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
	if !ok || local == "" || strings.TrimSpace(local) != local {
		return nil
	}
	return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &local}
}

func sameProfile(a, b *corev1.AppArmorProfile) bool {
	if b == nil || a.Type != b.Type || (a.LocalhostProfile == nil) != (b.LocalhostProfile == nil) {
		return false
	}
	return a.LocalhostProfile == nil || *a.LocalhostProfile == *b.LocalhostProfile
}

// qosClass is Guaranteed when every container is limited in cpu and memory to
// what it requests, BestEffort when none says anything of the two.
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	if r := spec.Resources; r != nil && len(r.Limits)+len(r.Requests) > 0 {
		return qosOf(r)
	}
	class := corev1.PodQOSClass("")
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			class = both(class, qosOf(&list[i].Resources))
		}
	}
	setEmpty(&class, corev1.PodQOSBestEffort)
	return class
}

func qosOf(r *corev1.ResourceRequirements) corev1.PodQOSClass {
	class := corev1.PodQOSClass("")
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := r.Requests[name], r.Limits[name]
		of := corev1.PodQOSGuaranteed
		switch {
		case !request.Equal(limit):
			of = corev1.PodQOSBurstable
		case request.IsZero():
			of = corev1.PodQOSBestEffort
		}
		class = both(class, of)
	}
	return class
}

// both is the class of two parts; the empty one has no say.
func both(a, b corev1.PodQOSClass) corev1.PodQOSClass {
	if a == "" || a == b {
		return b
	}
	return corev1.PodQOSBurstable
}
