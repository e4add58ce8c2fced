package statefulset

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// tend has the pods that there are have their labels and claims, and the claims the
// owners with which they should go.
func (s seen) tend(p *plan, replicas, condemned []*corev1.Pod) {
	for _, pod := range slices.Concat(replicas, condemned) {
		if pod == nil {
			continue
		}
		ordinal := ordinalOf(s.set, pod)
		s.own(p, pod, ordinal)
		if !s.has(ordinal) || pod.DeletionTimestamp != nil {
			continue
		}
		if pod.Status.Phase == corev1.PodPending {
			if claims, _ := s.lacking(pod, ordinal); len(claims) > 0 {
				p.supply = append(p.supply, member{pod, claims})
			}
		}
		if want := identity(pod.Name, ordinal); !contains(pod.Labels, want) {
			p.label = append(p.label, pod)
		}
	}
}

func contains(all, some map[string]string) bool {
	for k, v := range some {
		if all[k] != v {
			return false
		}
	}
	return true
}

// lacking are the claims that are to be made for a pod. It is not ok while a claim is
// about to go: then the pod would go on with storage that is taken from it.
func (s seen) lacking(pod *corev1.Pod, ordinal int) (out []*corev1.PersistentVolumeClaim, ok bool) {
	ok = true
	for i := range s.set.Spec.VolumeClaimTemplates {
		claim, there := s.claims[claimName(s.set, i, ordinal)]
		switch {
		case !there:
			out = append(out, s.newClaim(i, ordinal))
		case claim.DeletionTimestamp != nil || ofFormerPod(claim, pod):
			ok = false
		}
	}
	return out, ok
}

// ofFormerPod reports whether a claim is owned by another pod of the same name, with
// which it is collected.
func ofFormerPod(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.Kind == podKind.Kind && ref.Name == pod.Name && ref.UID != pod.UID
	})
}

func (s seen) newClaim(i, ordinal int) *corev1.PersistentVolumeClaim {
	t := &s.set.Spec.VolumeClaimTemplates[i]
	labels := maps.Clone(t.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, s.set.Spec.Selector.MatchLabels)
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.set.Namespace, Name: claimName(s.set, i, ordinal), Labels: labels,
			Annotations: maps.Clone(t.Annotations), Finalizers: slices.Clone(t.Finalizers),
		},
		Spec: t.Spec,
	}
	if _, deleted := s.retention(); deleted {
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.set, kind)}
	}
	return claim
}

// retention says whether claims go with the pods of which there are too many, and with
// the set.
func (s seen) retention() (scaled, deleted bool) {
	r := s.set.Spec.PersistentVolumeClaimRetentionPolicy
	if r == nil {
		return false, false
	}
	return r.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		r.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
}

// own has the claims of a pod have the owners that the policy says: the pod if they go
// when it is too many, and otherwise the set if they go with it.
func (s seen) own(p *plan, pod *corev1.Pod, ordinal int) {
	scaled, deleted := s.retention()
	byPod := scaled && !s.has(ordinal)
	for i := range s.set.Spec.VolumeClaimTemplates {
		claim := s.claims[claimName(s.set, i, ordinal)]
		if claim == nil || claim.DeletionTimestamp != nil || s.foreign(claim, pod) {
			continue
		}
		refs := slices.DeleteFunc(slices.Clone(claim.OwnerReferences), func(r metav1.OwnerReference) bool {
			return r.UID == s.set.UID || r.UID == pod.UID
		})
		switch {
		case byPod:
			refs = append(refs, *metav1.NewControllerRef(pod, podKind))
		case deleted:
			refs = append(refs, *metav1.NewControllerRef(s.set, kind))
		}
		if !equality.Semantic.DeepEqual(refs, claim.OwnerReferences) {
			claim = claim.DeepCopy()
			claim.OwnerReferences = refs
			p.own = append(p.own, claim)
		}
	}
}

// foreign reports whether a claim has a controller that is not ours to replace.
func (s seen) foreign(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) bool {
	c := metav1.GetControllerOfNoCopy(claim)
	return c != nil && c.UID != s.set.UID && c.UID != pod.UID
}
