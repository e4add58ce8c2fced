package deployment

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/dump"
)

// hash names a template. It is of the template's Go type, as kube-controller-manager's
// is, and so may differ between versions of the API's types. Nothing depends on it:
// templates are compared themselves.
func hash(t *corev1.PodTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, dump.ForHash(*t)) // a hash takes all
	if collisions != nil {
		var b [8]byte
		binary.LittleEndian.PutUint32(b[:], uint32(*collisions))
		_, _ = h.Write(b[:])
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// newPart is a part whose ReplicaSet is yet to be made, and has no replicas.
func (s seen) newPart() *part {
	d := s.deployment
	h := hash(&d.Spec.Template, d.Status.CollisionCount)
	template := *d.Spec.Template.DeepCopy()
	template.Labels = withHash(template.Labels, h)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withHash(selector.MatchLabels, h)
	return &part{set: &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: setName(d.Name, h), Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Selector: selector, Template: template},
	}}
}

func withHash(labels map[string]string, h string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[appsv1.DefaultDeploymentUniqueLabelKey] = h
	return out
}

// setName is the name of a ReplicaSet; a Deployment's name that is too long is cut.
func setName(deployment, h string) string {
	most := validation.DNS1123SubdomainMaxLength - len(h) - 1
	return deployment[:min(len(deployment), most)] + "-" + h
}
