// Package foo is the custom resource that both sides' controllers are for, and all
// of their logic that does not depend on a library.
package foo

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Version is the group and version of Foos.
var Version = schema.GroupVersion{Group: "bench.example.com", Version: "v1"}

// AddToScheme tells a scheme of Foos.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(Version, &Foo{}, &FooList{})
	metav1.AddToGroupVersion(s, Version)
	return nil
}

// Foo wants a Deployment.
type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitempty"`
}

// Spec says which one.
type Spec struct {
	DeploymentName string `json:"deploymentName"`
	Replicas       int32  `json:"replicas"`
	Image          string `json:"image"`
}

// Status tells how the Deployment is.
type Status struct {
	AvailableReplicas  int32 `json:"availableReplicas"`
	ObservedGeneration int64 `json:"observedGeneration"`
	Ready              bool  `json:"ready"`
	// Pass is counted up by benchmarks that write.
	Pass int64 `json:"pass,omitempty"`
}

// FooList is a list of Foos.
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Foo `json:"items"`
}

// APIKind is for Evenkeel's client.
func (*Foo) APIKind() schema.GroupVersionKind { return Version.WithKind("Foo") }

// Clone returns a copy.
func (f *Foo) Clone() *Foo {
	out := *f
	f.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject returns a copy.
func (f *Foo) DeepCopyObject() runtime.Object { return f.Clone() }

// DeepCopyObject returns a copy.
func (l *FooList) DeepCopyObject() runtime.Object {
	out := &FooList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy(), Items: make([]Foo, len(l.Items))}
	for i := range l.Items {
		out.Items[i] = *l.Items[i].Clone()
	}
	return out
}

// Deployment is what a Foo wants, without its owner.
func (f *Foo) Deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "bench", "controller": f.Name}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: f.Spec.DeploymentName, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &f.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: f.Spec.Image}}},
			},
		},
	}
}

// StatusFrom is the status of a Foo with a Deployment.
func (f *Foo) StatusFrom(d *appsv1.Deployment) Status {
	return Status{
		AvailableReplicas: d.Status.AvailableReplicas, ObservedGeneration: f.Generation,
		Ready: d.Status.AvailableReplicas == f.Spec.Replicas, Pass: f.Status.Pass,
	}
}

// Definition defines Foos.
const Definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"foos.bench.example.com"},
"spec":{"group":"bench.example.com","scope":"Namespaced","names":{"plural":"foos","singular":"foo","kind":"Foo","listKind":"FooList"},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","required":["deploymentName"],"properties":{"deploymentName":{"type":"string"},
"replicas":{"type":"integer","format":"int32","minimum":1,"maximum":10},"image":{"type":"string"}}},
"status":{"type":"object","properties":{"availableReplicas":{"type":"integer","format":"int32"},
"observedGeneration":{"type":"integer","format":"int64"},"ready":{"type":"boolean"},"pass":{"type":"integer","format":"int64"}}}}}}}]}}`
