package v1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a copy that shares nothing with the original.
func (c *CloudManager) DeepCopy() *CloudManager {
	if c == nil {
		return nil
	}
	out := *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	for _, part := range []*Part{&out.Spec.Front, &out.Spec.Identity, &out.Spec.DB.Part} {
		if part.Replicas != nil {
			part.Replicas = new(*part.Replicas)
		}
	}
	out.Spec.DB.Storage.AccessModes = slices.Clone(c.Spec.DB.Storage.AccessModes)
	out.Status.Conditions = slices.Clone(c.Status.Conditions) // which are plain values
	return &out
}

// DeepCopyObject is for [runtime.Object].
func (c *CloudManager) DeepCopyObject() runtime.Object { return c.DeepCopy() }
