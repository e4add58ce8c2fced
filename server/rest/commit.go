package rest

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

// errModified is the cause of a conflict that reading again can solve.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

func (c *call) conflict() error {
	return apierrors.NewConflict(c.res.groupResource(), c.target.name, errModified)
}

// commit stores an object in place of the one at a revision, zero for none. It
// returns once all readers see it. A lost race is storage.ErrConflict.
func (a *API) commit(ctx context.Context, r *resource, obj runtime.Object, at storage.Revision) (*watch.Object, error) {
	m := accessor(obj)
	value, err := r.toStoredBytes(ctx, obj)
	if err != nil {
		return nil, err
	}
	if note := writerOf(ctx).note; note != nil {
		value = watch.WithNote(value, note)
	}
	key := watch.Key(r.storage, m.GetNamespace(), m.GetName())
	result, err := a.write(ctx, storage.Replace(key, value, at))
	if err != nil {
		return nil, err
	}
	if err := a.hub.Wait(ctx, result.Revision); err != nil {
		return nil, fmt.Errorf("the object is stored, but not yet seen: %w", err)
	}
	stored, err := watch.NewObject(key, value, result.Revision)
	if err == nil {
		r.wrote(stored)
	}
	return stored, err
}

// remove deletes what is stored at a revision.
func (a *API) remove(ctx context.Context, r *resource, o *watch.Object) (storage.Revision, error) {
	key := watch.Key(r.storage, o.Namespace, o.Name)
	w := storage.Delete(key, o.Revision)
	w.Value = writerOf(ctx).note
	result, err := a.write(ctx, w)
	if err != nil {
		return 0, err
	}
	return result.Revision, a.hub.Wait(ctx, result.Revision)
}

// newest returns an object that stands in the way of a write, or nil. Servers
// that share a store may have removed one that this server still sees.
func (a *API) newest(ctx context.Context, r *watch.Resource, namespace, name string) (*watch.Object, error) {
	if r.Get(namespace, name) == nil {
		return nil, nil
	}
	if err := a.hub.Sync(ctx); err != nil {
		return nil, err
	}
	return r.Get(namespace, name), nil
}
