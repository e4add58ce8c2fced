package events

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
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
	kind, err := kindOf(obj, r.options.Scheme)
	if err != nil {
		return nil, err
	}
	return &corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: m.GetNamespace(), Name: m.GetName(),
		UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(),
	}, nil
}

// kindOf finds the kind of an object: what it says, or what its type tells.
func kindOf(obj runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	if kind := obj.GetObjectKind().GroupVersionKind(); kind.Kind != "" && kind.Version != "" {
		return kind, nil
	}
	if k, ok := obj.(client.Kinded); ok {
		return k.APIKind(), nil
	}
	if scheme != nil {
		if kinds, _, err := scheme.ObjectKinds(obj); err == nil {
			return kinds[0], nil
		}
	}
	if kind, ok := builtinKind(reflect.TypeOf(obj)); ok {
		return kind, nil
	}
	return schema.GroupVersionKind{}, fmt.Errorf("%T: %w: set its kind, or give the recorder a scheme", obj, ErrUnknownKind)
}

// builtinGroups are the folders of k8s.io/api that are not called as their group
// without .k8s.io.
var builtinGroups = map[string]string{
	"core": "", "apps": "apps", "autoscaling": "autoscaling", "batch": "batch", "extensions": "extensions", "policy": "policy",
	"apiserverinternal": "internal.apiserver.k8s.io", "flowcontrol": "flowcontrol.apiserver.k8s.io", "rbac": "rbac.authorization.k8s.io",
}

// builtinKind reads the kind of a type of k8s.io/api off its name.
func builtinKind(t reflect.Type) (schema.GroupVersionKind, bool) {
	if t.Kind() != reflect.Pointer {
		return schema.GroupVersionKind{}, false
	}
	path, ok := strings.CutPrefix(t.Elem().PkgPath(), "k8s.io/api/")
	folder, version, versioned := strings.Cut(path, "/")
	if !ok || !versioned {
		return schema.GroupVersionKind{}, false
	}
	group, named := builtinGroups[folder]
	if !named {
		group = folder + ".k8s.io"
	}
	return schema.GroupVersionKind{Group: group, Version: version, Kind: t.Elem().Name()}, true
}
