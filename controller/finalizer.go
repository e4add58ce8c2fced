package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/even-keel/evenkeel/client"
)

// Finalize has cleanup be called before an object goes. While the object is not
// being deleted, it has the finalizer: that is written if it is missing. When it is
// being deleted and has the finalizer, cleanup is called, and the finalizer taken
// off once that returned nil.
//
// It returns the object as it now is, and whether it is being deleted: then there is
// nothing else to do for it. If somebody wrote first, [client.IsConflict] is true of
// the error, and the next reconcile will do it.
func Finalize[T client.Object](ctx context.Context, c *client.Client[T], obj T, finalizer string, cleanup func(context.Context, T) error) (now T, deleted bool, err error) {
	has := slices.Contains(obj.GetFinalizers(), finalizer)
	switch deleting := obj.GetDeletionTimestamp() != nil; {
	case !deleting && has:
		return obj, false, nil
	case !deleting:
		now, err = setFinalizers(ctx, c, obj, append(slices.Clone(obj.GetFinalizers()), finalizer))
		return now, false, err
	case !has:
		return obj, true, nil
	}
	if err := cleanup(ctx, obj); err != nil {
		return obj, true, fmt.Errorf("clean up %s for %s: %w", client.KeyOf(obj), finalizer, err)
	}
	left := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == finalizer })
	now, err = setFinalizers(ctx, c, obj, left)
	if client.IsNotFound(err) {
		return obj, true, nil
	}
	return now, true, err
}

// setFinalizers writes the finalizers of just this revision of an object.
func setFinalizers[T client.Object](ctx context.Context, c *client.Client[T], obj T, finalizers []string) (T, error) {
	if finalizers == nil {
		finalizers = []string{}
	}
	now, err := c.Patch(ctx, client.KeyOf(obj), client.MergePatch(map[string]any{"metadata": map[string]any{
		"resourceVersion": obj.GetResourceVersion(), "uid": obj.GetUID(), "finalizers": finalizers,
	}}))
	if err != nil {
		return obj, fmt.Errorf("set the finalizers of %s: %w", client.KeyOf(obj), err)
	}
	return now, nil
}
