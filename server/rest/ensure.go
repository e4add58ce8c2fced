package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/storage"
)

// silent is for answers that no API gives.
var silent = &API{codec: newCodec(kinds.Scheme()), log: slog.New(slog.DiscardHandler)}

// ownManager is the manager of what the server itself makes.
const ownManager = "kube-apiserver"

// Ensure makes an object that the server itself wants to be there. One that
// exists is left alone.
func (a *API) Ensure(ctx context.Context, obj runtime.Object) error {
	gvks, _, err := a.codec.scheme.ObjectKinds(obj)
	if err != nil {
		return err
	}
	r := a.resourceOf(gvks[0])
	if r == nil {
		return fmt.Errorf("%s is not served", gvks[0])
	}
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(r.gvk)
	m := accessor(obj)
	if r.objects.Get(m.GetNamespace(), m.GetName()) != nil {
		return nil
	}
	c := &call{api: a, res: r, target: target{namespace: m.GetNamespace(), name: m.GetName()}}
	if r.kind.Default != nil {
		r.kind.Default(obj)
	}
	c.fillSystemFields(m)
	if r.kind.PrepareCreate != nil {
		r.kind.PrepareCreate(obj)
	}
	if err := c.trackFields(nil, obj, ownManager, ""); err != nil {
		return err
	}
	if _, err := a.commit(ctx, r, obj, 0); err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("make %s %s/%s: %w", gvks[0].Kind, m.GetNamespace(), m.GetName(), err)
	}
	return nil
}

func (a *API) resourceOf(gvk schema.GroupVersionKind) *resource {
	for _, r := range a.registry.all() {
		if r.gvk == gvk {
			return r
		}
	}
	return nil
}
