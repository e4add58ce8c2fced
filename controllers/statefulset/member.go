package statefulset

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/controllers/pods"
)

func podName(set *appsv1.StatefulSet, ordinal int) string {
	return set.Name + "-" + strconv.Itoa(ordinal)
}

// ordinalOf is the number in a pod's name, -1 if it is not a name of the set's pods.
func ordinalOf(set *appsv1.StatefulSet, p *corev1.Pod) int { return ordinalIn(set.Name+"-", p.Name) }

func ordinalIn(prefix, name string) int {
	digits, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.ParseInt(digits, 10, 32)
	if !ok || err != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return -1
	}
	return int(n)
}

func revisionOf(p *corev1.Pod) string { return p.Labels[appsv1.StatefulSetRevisionLabel] }

// claimName names the claim of a pod for the set's i-th template.
func claimName(set *appsv1.StatefulSet, i, ordinal int) string {
	return fmt.Sprintf("%s-%s", set.Spec.VolumeClaimTemplates[i].Name, podName(set, ordinal))
}

// claimedBy reports whether a name is one of the claims of a set's pods.
func claimedBy(set *appsv1.StatefulSet, name string) bool {
	return slices.ContainsFunc(set.Spec.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool {
		return ordinalIn(t.Name+"-"+set.Name+"-", name) >= 0
	})
}

// ordinals are those of the pods that there should be, and of the others that there
// are.
func (s seen) ordinals() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range s.wanted() {
			if !yield(s.start() + i) {
				return
			}
		}
		for _, p := range s.pods {
			if i := ordinalOf(s.set, p); !s.has(i) && !yield(i) {
				return
			}
		}
	}
}

// has reports whether there should be a pod of an ordinal.
func (s seen) has(ordinal int) bool {
	return ordinal >= s.start() && ordinal < s.start()+s.wanted()
}

// newPod is a pod yet to be made: of the current revision below the partition, and of
// the new one otherwise.
func (s seen) newPod(ordinal int) *corev1.Pod {
	template, of := &s.set.Spec.Template, s.update
	if ordinal-s.start() < s.partition() {
		template, of = s.currentTemplate, s.current
	}
	p := pods.Of(template, s.set, kind)
	p.Name = podName(s.set, ordinal)
	maps.Copy(p.Labels, identity(p.Name, ordinal))
	p.Labels[appsv1.StatefulSetRevisionLabel] = of
	p.Spec.Hostname, p.Spec.Subdomain = p.Name, s.set.Spec.ServiceName
	p.Spec.Volumes = s.volumes(p.Spec.Volumes, ordinal)
	return p
}

// identity are the labels that tell which pod of a set one is.
func identity(name string, ordinal int) map[string]string {
	return map[string]string{appsv1.StatefulSetPodNameLabel: name, appsv1.PodIndexLabel: strconv.Itoa(ordinal)}
}

// volumes are those of the pod's claims, and the template's that have other names.
func (s seen) volumes(of []corev1.Volume, ordinal int) []corev1.Volume {
	var out []corev1.Volume
	for i, t := range s.set.Spec.VolumeClaimTemplates {
		out = append(out, corev1.Volume{Name: t.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(s.set, i, ordinal)},
		}})
	}
	for _, v := range of {
		if !slices.ContainsFunc(s.set.Spec.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool { return t.Name == v.Name }) {
			out = append(out, v)
		}
	}
	return out
}
