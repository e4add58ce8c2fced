package events

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// reference names an object.
func (r *Recorder) reference(obj runtime.Object) (*corev1.ObjectReference, error) {
	if v := reflect.ValueOf(obj); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("no object: %w", ErrEvent)
	}
	if ref, ok := obj.(*corev1.ObjectReference); ok {
		return ref.DeepCopy(), nil
	}
	m, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no metadata: %w", obj, ErrEvent)
	}
	kind, err := r.client.Conn().KindOf(obj)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	return &corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: m.GetNamespace(), Name: m.GetName(),
		UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(),
	}, nil
}
