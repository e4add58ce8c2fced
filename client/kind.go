package client

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object is what a client reads and writes: pointers to generated types,
// *unstructured.Unstructured and *metav1.PartialObjectMetadata alike.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names an object of one kind. Objects outside of namespaces have none.
type Key = types.NamespacedName

// KeyOf returns the key of an object.
func KeyOf(obj metav1.Object) Key {
	return Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Kinded is a type that knows its kind, so that nothing else has to tell it.
// It is called on a nil pointer.
type Kinded interface {
	APIKind() schema.GroupVersionKind
}

// Resource is how a server serves a kind.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// GVK returns the resource's kind.
func (r Resource) GVK() schema.GroupVersionKind { return r.GroupVersion().WithKind(r.Kind) }

// builtinTypes is where the Go types of the built-in kinds are; the last element
// of the path is the version.
const builtinTypes = "k8s.io/api/"

// builtinGroups are the folders there whose groups are called otherwise.
var builtinGroups = map[string]string{
	"admission":             "admission.k8s.io",
	"admissionregistration": "admissionregistration.k8s.io",
	"apidiscovery":          "apidiscovery.k8s.io",
	"apiserverinternal":     "internal.apiserver.k8s.io",
	"authentication":        "authentication.k8s.io",
	"authorization":         "authorization.k8s.io",
	"certificates":          "certificates.k8s.io",
	"coordination":          "coordination.k8s.io",
	"core":                  "",
	"discovery":             "discovery.k8s.io",
	"events":                "events.k8s.io",
	"flowcontrol":           "flowcontrol.apiserver.k8s.io",
	"imagepolicy":           "imagepolicy.k8s.io",
	"lifecycle":             "lifecycle.k8s.io",
	"networking":            "networking.k8s.io",
	"node":                  "node.k8s.io",
	"rbac":                  "rbac.authorization.k8s.io",
	"resource":              "resource.k8s.io",
	"scheduling":            "scheduling.k8s.io",
	"storage":               "storage.k8s.io",
	"storagemigration":      "storagemigration.k8s.io",
}

// clusterScoped are the built-in kinds outside of namespaces.
var clusterScoped = map[string]bool{
	"CertificateSigningRequest": true, "ClusterRole": true, "ClusterRoleBinding": true, "ClusterTrustBundle": true,
	"ComponentStatus": true, "CSIDriver": true, "CSINode": true, "DeviceClass": true, "DeviceTaintRule": true,
	"FlowSchema": true, "IPAddress": true, "ImageReview": true, "IngressClass": true, "MutatingAdmissionPolicy": true,
	"MutatingAdmissionPolicyBinding": true, "MutatingWebhookConfiguration": true, "Namespace": true, "Node": true,
	"PersistentVolume": true, "PriorityClass": true, "PriorityLevelConfiguration": true,
	"ResourcePoolStatusRequest": true, "ResourceSlice": true, "RuntimeClass": true,
	"SelfSubjectAccessReview": true, "SelfSubjectReview": true, "SelfSubjectRulesReview": true, "ServiceCIDR": true,
	"StorageClass": true, "StorageVersion": true, "StorageVersionMigration": true, "SubjectAccessReview": true,
	"TokenReview": true, "ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
	"ValidatingWebhookConfiguration": true, "VolumeAttachment": true, "VolumeAttributesClass": true,
}

// builtinKind is the kind of a type of k8s.io/api. It is read off the type's
// name, so that no scheme has to be linked in and filled.
func builtinKind(t reflect.Type) (schema.GroupVersionKind, bool) {
	path, ok := strings.CutPrefix(t.PkgPath(), builtinTypes)
	if !ok {
		return schema.GroupVersionKind{}, false
	}
	folder, version, ok := strings.Cut(path, "/")
	if !ok {
		return schema.GroupVersionKind{}, false
	}
	group, named := builtinGroups[folder]
	if !named {
		group = folder
	}
	return schema.GroupVersionKind{Group: group, Version: version, Kind: t.Name()}, true
}

// builtinResource is how every server serves a built-in kind.
func builtinResource(gvk schema.GroupVersionKind) *Resource {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return &Resource{GroupVersionResource: plural, Kind: gvk.Kind, Namespaced: !clusterScoped[gvk.Kind]}
}

var (
	unstructuredType = reflect.TypeFor[*unstructured.Unstructured]()
	metadataType     = reflect.TypeFor[*metav1.PartialObjectMetadata]()
)

// KindOf returns the kind of an object: the one that it says or, if it says none,
// that its type tells, as [Of] has it. It asks no server.
func (c *Conn) KindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	if kind := obj.GetObjectKind().GroupVersionKind(); kind.Kind != "" && kind.Version != "" {
		return kind, nil
	}
	return kindOf(reflect.TypeOf(obj), c.scheme)
}

// kindOf finds the kind of a Go type that no option names.
func kindOf(t reflect.Type, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	if t.Kind() != reflect.Pointer {
		return schema.GroupVersionKind{}, fmt.Errorf("%s is no pointer: %w", t, ErrUnknownType)
	}
	if k, ok := reflect.Zero(t).Interface().(Kinded); ok {
		return k.APIKind(), nil
	}
	if scheme != nil {
		obj, ok := reflect.New(t.Elem()).Interface().(runtime.Object)
		if ok {
			if kinds, _, err := scheme.ObjectKinds(obj); err == nil {
				return kinds[0], nil
			}
		}
	}
	if gvk, ok := builtinKind(t.Elem()); ok {
		return gvk, nil
	}
	return schema.GroupVersionKind{}, fmt.Errorf("%s: %w: register it in a scheme, give it a method APIKind or name its kind", t, ErrUnknownType)
}
