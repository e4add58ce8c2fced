package webhook

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
)

// Hook is what a server answers: [Mutate], [Validate] or [Convert].
type Hook struct {
	verb string
	// kindOf finds the kind of the Go type; an option may name it instead. gvk is what it
	// found.
	kindOf func(*client.Conn, []client.KindOption) (schema.GroupVersionKind, error)
	kind   []client.KindOption
	gvk    schema.GroupVersionKind

	review     func(context.Context, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)
	operations []admissionv1.Operation
	resource   schema.GroupVersionResource
	configure  func(*admissionregistrationv1.MutatingWebhook)

	// convert makes the converter of a hub.
	convert func(*client.Conn) (*converter, error)
}

// HookOption changes a hook.
type HookOption func(*Hook)

// On says for which operations the hook is called, in place of creations and updates.
func On(operations ...admissionv1.Operation) HookOption {
	return func(h *Hook) { h.operations = operations }
}

// Kind names the kind of objects whose Go type does not tell it.
func Kind(kind schema.GroupVersionKind) HookOption {
	return func(h *Hook) { h.kind = []client.KindOption{client.Kind(kind)} }
}

// Resource names the resource that the hook is for, if that is not the one of its kind,
// such as pods/eviction.
func Resource(resource schema.GroupVersionResource) HookOption {
	return func(h *Hook) { h.resource = resource }
}

// Configure changes how the webhook is registered: its rules, selectors, conditions,
// failure policy, side effects, timeout. For one that validates, the fields have the
// same meaning.
func Configure(f func(*admissionregistrationv1.MutatingWebhook)) HookOption {
	return func(h *Hook) { h.configure = f }
}

func kindFunc[T client.Object](conn *client.Conn, opts []client.KindOption) (schema.GroupVersionKind, error) {
	t := reflect.TypeFor[T]()
	kind := client.Of[T](conn, opts...).Kind()
	if kind.Empty() || t.Kind() != reflect.Pointer {
		return kind, fmt.Errorf("webhook of %s: %w", t, client.ErrUnknownType)
	}
	return kind, nil
}

// path is where the hook is served: where kubebuilder's manifests expect it.
func (h Hook) path() string {
	group := strings.ReplaceAll(h.gvk.Group, ".", "-")
	return fmt.Sprintf("/%s-%s-%s-%s", h.verb, group, h.gvk.Version, strings.ToLower(h.gvk.Kind))
}

// name is what the hook is called in a configuration, where names have three parts or
// more.
func (h Hook) name(configuration string) string {
	parts := []string{h.verb, strings.ToLower(h.gvk.Kind), h.gvk.Version, h.gvk.Group, configuration}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ".")
}
