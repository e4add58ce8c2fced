package operator

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	v1 "github.com/even-keel/evenkeel/examples/cloudmanager/api/v1"
)

const (
	passwordKey = "root-password"
	volume      = "data"
	// passwordSince is the generation of the CloudManager that brought the password:
	// a new one makes new pods, and says nothing of the password itself.
	passwordSince = "cloudmanagercontroller.huayun.com/password-since"
)

func authName(cm *v1.CloudManager) string {
	if cm.Spec.DB.Name == "" {
		return ""
	}
	return cm.Spec.DB.Name + "-auth"
}

// kindOf is the kind of an object that an application has.
func kindOf(obj client.Object) string {
	switch obj.(type) {
	case *corev1.Secret:
		return "Secret"
	case *appsv1.StatefulSet:
		return "StatefulSet"
	default:
		return "Deployment"
	}
}

// nameOf tells an object from others of its namespace.
func nameOf(obj client.Object) string { return kindOf(obj) + "/" + obj.GetName() }

// namesOf are the objects that a CloudManager names.
func namesOf(cm *v1.CloudManager) []string {
	return []string{
		"Secret/" + authName(cm), "StatefulSet/" + cm.Spec.DB.Name,
		"Deployment/" + cm.Spec.Identity.Name, "Deployment/" + cm.Spec.Front.Name,
	}
}

// labelsOf tell the pods of a part from all others.
func labelsOf(cm *v1.CloudManager, component string, p v1.Part) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": p.Name, "app.kubernetes.io/component": component, "app.kubernetes.io/part-of": cm.Name,
	}
}

func metaOf(cm *v1.CloudManager, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: cm.Namespace, Name: name, Labels: maps.Clone(labels),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cm, cm.APIKind())},
	}
}

func replicasOf(p v1.Part) int32 {
	if p.Replicas == nil {
		return 1
	}
	return *p.Replicas
}

// authOf is the Secret with the password. have is the one that exists, or nil.
func authOf(cm *v1.CloudManager, have client.Object) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metaOf(cm, authName(cm), labelsOf(cm, "db", cm.Spec.DB.Part)), Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{passwordKey: []byte(cm.Spec.DB.RootPass)},
	}
	since := strconv.FormatInt(cm.Generation, 10)
	if old, ok := have.(*corev1.Secret); ok && string(old.Data[passwordKey]) == cm.Spec.DB.RootPass {
		since = cmp.Or(old.Annotations[passwordSince], since)
	}
	s.Annotations = map[string]string{passwordSince: since}
	return s
}

// databaseOf is the StatefulSet of the database. Its claims need a size that is one:
// see [validate].
func databaseOf(cm *v1.CloudManager, auth *corev1.Secret) *appsv1.StatefulSet {
	db := cm.Spec.DB
	labels := labelsOf(cm, "db", db.Part)
	template := templateOf("db", db.Part, labels)
	template.Annotations = maps.Clone(auth.Annotations)
	main := &template.Spec.Containers[0]
	main.Env = []corev1.EnvVar{{Name: "MYSQL_ROOT_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: auth.Name}, Key: passwordKey,
	}}}}
	main.VolumeMounts = []corev1.VolumeMount{{Name: volume, MountPath: "/var/lib/mysql"}}
	return &appsv1.StatefulSet{
		ObjectMeta: metaOf(cm, db.Name, labels),
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(replicasOf(db.Part)), Template: template,
			Selector:             &metav1.LabelSelector{MatchLabels: labels},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claimOf(db.Storage)},
		},
	}
}

func claimOf(s v1.Storage) corev1.PersistentVolumeClaim {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: volume}}
	for _, mode := range s.AccessModes {
		claim.Spec.AccessModes = append(claim.Spec.AccessModes, corev1.PersistentVolumeAccessMode(mode))
	}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(s.Size)}
	if s.StorageClassName != "" {
		claim.Spec.StorageClassName = new(s.StorageClassName)
	}
	return claim
}

func deploymentOf(cm *v1.CloudManager, component string, p v1.Part) *appsv1.Deployment {
	labels := labelsOf(cm, component, p)
	return &appsv1.Deployment{
		ObjectMeta: metaOf(cm, p.Name, labels),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicasOf(p)), Template: templateOf(component, p, labels),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
		},
	}
}

func templateOf(component string, p v1.Part, labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: component, Image: p.Image}}},
	}
}

// selectorOf is what cannot be changed: by it, an object runs the pods of one part.
func selectorOf(obj client.Object) *metav1.LabelSelector {
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		return obj.Spec.Selector
	case *appsv1.Deployment:
		return obj.Spec.Selector
	}
	return nil
}

// fitted is an object with what it should have, and all else as it is: servers fill
// in defaults, and others may have a say in the rest.
func fitted(have, want client.Object) client.Object {
	out := have.DeepCopyObject().(client.Object)
	out.SetLabels(with(out.GetLabels(), want.GetLabels()))
	out.SetAnnotations(with(out.GetAnnotations(), want.GetAnnotations()))
	switch out := out.(type) {
	case *corev1.Secret:
		out.Data = want.(*corev1.Secret).Data
	case *appsv1.StatefulSet:
		wanted := want.(*appsv1.StatefulSet).Spec
		out.Spec.Replicas = wanted.Replicas
		fitTemplate(&out.Spec.Template, wanted.Template)
		fitClaims(&out.Spec, wanted)
	case *appsv1.Deployment:
		wanted := want.(*appsv1.Deployment).Spec
		out.Spec.Replicas = wanted.Replicas
		fitTemplate(&out.Spec.Template, wanted.Template)
	}
	return out
}

func with(have, want map[string]string) map[string]string {
	if have == nil {
		return want
	}
	maps.Copy(have, want)
	return have
}

// fitTemplate fits the one container that there should be; others, which admission
// may have put in, stay.
func fitTemplate(have *corev1.PodTemplateSpec, want corev1.PodTemplateSpec) {
	have.Labels = with(have.Labels, want.Labels)
	have.Annotations = with(have.Annotations, want.Annotations)
	main := want.Spec.Containers[0]
	i := slices.IndexFunc(have.Spec.Containers, func(c corev1.Container) bool { return c.Name == main.Name })
	if i < 0 {
		have.Spec.Containers = want.Spec.Containers
		return
	}
	c := &have.Spec.Containers[i]
	c.Image, c.Env, c.VolumeMounts = main.Image, main.Env, main.VolumeMounts
}

// fitClaims fits the claim. Servers do not allow it to be changed; that is theirs to
// say.
func fitClaims(have *appsv1.StatefulSetSpec, want appsv1.StatefulSetSpec) {
	if len(have.VolumeClaimTemplates) != 1 {
		have.VolumeClaimTemplates = want.VolumeClaimTemplates
		return
	}
	h, w := &have.VolumeClaimTemplates[0].Spec, want.VolumeClaimTemplates[0].Spec
	h.AccessModes, h.Resources, h.StorageClassName = w.AccessModes, w.Resources, w.StorageClassName
}
