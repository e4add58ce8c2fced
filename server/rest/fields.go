package rest

import (
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

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
			f = patch.NewFields(a.types, a.codec.scheme, patch.Endpoint{
				Kind: r.gvk, Subresource: subresource, Reset: resetFields(r, subresource), New: r.new, Now: a.now,
			})
			made[subresource] = f
		}
		return f
	}
}

// resetFields are what a write through an endpoint does not change.
func resetFields(r *resource, subresource string) []string {
	switch {
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
