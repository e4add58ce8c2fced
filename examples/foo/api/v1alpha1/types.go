// Package v1alpha1 has the Go types of foos.samplecontroller.k8s.io.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of all types of this package.
var GroupVersion = schema.GroupVersion{Group: "samplecontroller.k8s.io", Version: "v1alpha1"}

// Foo asks for a Deployment.
type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FooSpec   `json:"spec"`
	Status FooStatus `json:"status"`
}

// FooSpec is what the Deployment should be.
type FooSpec struct {
	// DeploymentName is its name; it is in the namespace of the Foo.
	DeploymentName string `json:"deploymentName,omitempty"`
	// Replicas is how many it should have; nil leaves that to others.
	Replicas *int32 `json:"replicas,omitempty"`
}

// FooStatus is what became of it.
type FooStatus struct {
	AvailableReplicas int32 `json:"availableReplicas"`
}

// APIKind tells clients the kind, without a scheme.
func (*Foo) APIKind() schema.GroupVersionKind { return GroupVersion.WithKind("Foo") }

// DeepCopy returns a copy that shares nothing with the Foo.
func (f *Foo) DeepCopy() *Foo {
	if f == nil {
		return nil
	}
	out := *f
	f.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if f.Spec.Replicas != nil {
		out.Spec.Replicas = new(*f.Spec.Replicas)
	}
	return &out
}

// DeepCopyObject is for [runtime.Object].
func (f *Foo) DeepCopyObject() runtime.Object { return f.DeepCopy() }
