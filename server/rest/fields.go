package rest

import (
	"context"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/even-keel/evenkeel/server/custom"
	"github.com/even-keel/evenkeel/server/patch"
)

// fieldManagers returns the field managers of a resource by subresource, made
// when first used.
func (a *API) fieldManagers(r *resource) func(string) *patch.Fields {
	var mu sync.Mutex
	made := map[string]*patch.Fields{}
	return func(subresource string) *patch.Fields {
		mu.Lock()
		defer mu.Unlock()
		f := made[subresource]
		if f == nil {
			at := patch.Endpoint{
				Kind: r.gvk, Subresource: subresource, Reset: resetFields(r, subresource), New: r.new, Now: a.now,
			}
			types := a.types
			if r.custom != nil {
				types = r.types()
				at.Custom, at.Convert = true, r.convertForApply
			}
			f = patch.NewFields(types, a.codec.scheme, at)
			made[subresource] = f
		}
		return f
	}
}

// customTypes returns the types of the versions of a custom resource, made when
// first used. Without a schema they are deduced from values.
func (a *API) customTypes(versions map[string]*custom.Version, preserveUnknown bool) func() *patch.Types {
	return sync.OnceValue(func() *patch.Types {
		kinds := map[schema.GroupVersionKind]*spec.Schema{}
		for _, v := range versions {
			if s, err := v.Schema(); err == nil {
				kinds[v.Kind.GVK] = s.OpenAPI()
			}
		}
		types, err := patch.NewCustomTypes(a.types, kinds, preserveUnknown)
		if err != nil {
			a.log.Error("the schema of a custom resource is no use to apply; types are deduced", "error", err)
			return patch.NewTypes(nil)
		}
		return types
	})
}

// convertForApply brings an object into the version in which somebody owns
// fields.
func (r *resource) convertForApply(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	if to.Group != r.gvk.Group || r.custom.Siblings()[to.Version] == nil {
		return nil, runtime.NewNotRegisteredErrForKind("custom resources", to.WithKind(r.gvk.Kind))
	}
	out, err := r.custom.Convert(context.Background(), []*unstructured.Unstructured{obj.(*unstructured.Unstructured)}, to)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// resetFields are what a write through an endpoint does not change.
func resetFields(r *resource, subresource string) []string {
	switch {
	case r.custom != nil && subresource == "status":
		return []string{"metadata", "spec"}
	case !r.kind.HasStatus:
		return nil
	case subresource == "":
		return []string{"status"}
	case subresource != "status":
		return nil
	}
	var out []string
	t := reflect.TypeOf(r.new()).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "metadata" && name != "status" {
			out = append(out, name)
		}
	}
	return out
}

// trackFields records in obj who set which of its fields. live is nil for a new
// object. That it fails is for the log: a write does not fail for it.
func (c *call) trackFields(live, obj runtime.Object, manager, subresource string) error {
	versioned, err := c.versioned(obj)
	if err != nil {
		return err
	}
	if live != nil {
		if live, err = c.versioned(live); err != nil {
			return err
		}
	}
	tracked, err := c.res.fields(subresource).Update(live, versioned, manager)
	if err != nil {
		c.api.log.Warn("managed fields were not updated", "resource", c.res.storage, "name", c.target.name, "error", err)
	}
	accessor(obj).SetManagedFields(accessor(tracked).GetManagedFields())
	return nil
}
