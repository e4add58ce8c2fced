package garbage

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
)

// act carries a plan out. If the object has changed since it was looked at, the
// error is a conflict, and nothing is done.
func (c *collector) act(ctx context.Context, g *graph, obj dependent, p plan) error {
	switch p.verb {
	case orphan:
		return c.orphan(ctx, g, obj)
	case finish:
		_, err := obj.patch(ctx, withoutFinalizer(obj.object, metav1.FinalizerDeleteDependents))
		return err
	case drop:
		_, err := obj.patch(ctx, withoutOwners(obj.object, p.uids))
		return err
	case remove:
		return c.remove(ctx, obj, p)
	}
	return nil
}

func (c *collector) remove(ctx context.Context, obj dependent, p plan) error {
	if p.unblock {
		now, err := obj.patch(ctx, withoutBlocking(obj.object))
		if err != nil || now == nil {
			return err
		}
		obj.object = now
	}
	err := obj.kind.objects.Delete(ctx, client.KeyOf(obj),
		client.IfUID(obj.UID), client.IfRevision(obj.ResourceVersion), client.Propagation(p.policy))
	if err != nil && !missing(err) {
		return fmt.Errorf("delete it: %w", err)
	}
	return nil
}

// orphan takes an owner out of the references of its dependents, and lets it go.
// Dependents that the cache does not have yet lose theirs when it has: the owner is
// remembered.
func (c *collector) orphan(ctx context.Context, g *graph, owner dependent) error {
	work, all := errgroup.WithContext(ctx)
	work.SetLimit(workers)
	for d := range g.dependents(ownedIndex, owner.UID) {
		work.Go(func() error { return d.release(all, owner.UID) })
	}
	if err := work.Wait(); err != nil {
		return fmt.Errorf("orphan its dependents: %w", err)
	}
	g.orphaned.add(claim{owner.kind.GVK().GroupKind(), client.KeyOf(owner), owner.UID})
	_, err := owner.patch(ctx, withoutFinalizer(owner.object, metav1.FinalizerOrphanDependents))
	return err
}

// release removes an owner from a dependent's references, whatever else becomes of
// the dependent meanwhile.
func (d dependent) release(ctx context.Context, owner types.UID) error {
	for uid := d.UID; d.UID == uid; {
		if !slices.ContainsFunc(d.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner }) {
			return nil
		}
		_, err := d.patch(ctx, withoutOwners(d.object, []types.UID{owner}))
		if !client.IsConflict(err) {
			return err
		}
		now, err := d.kind.objects.Get(ctx, client.KeyOf(d))
		switch {
		case missing(err):
			return nil
		case err != nil:
			return fmt.Errorf("read %s: %w", describe(d), err)
		}
		d.object = now
	}
	return nil
}

// patch changes the metadata of an object that is as it is shown. It returns nil if
// the object is gone.
func (d dependent) patch(ctx context.Context, metadata map[string]any) (*object, error) {
	metadata["uid"], metadata["resourceVersion"] = d.UID, d.ResourceVersion
	now, err := d.kind.objects.Patch(ctx, client.KeyOf(d), client.MergePatch(map[string]any{"metadata": metadata}))
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("patch %s: %w", describe(d), err)
	}
	return now, nil
}

func withoutFinalizer(o *object, name string) map[string]any {
	kept := slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == name })
	return map[string]any{"finalizers": kept}
}

func withoutOwners(o *object, uids []types.UID) map[string]any {
	kept := slices.DeleteFunc(slices.Clone(o.OwnerReferences), func(r metav1.OwnerReference) bool { return slices.Contains(uids, r.UID) })
	return map[string]any{"ownerReferences": kept}
}

// withoutBlocking has an object hold up none of its owners.
func withoutBlocking(o *object) map[string]any {
	refs := slices.Clone(o.OwnerReferences)
	for i := range refs {
		refs[i].BlockOwnerDeletion = new(bool)
	}
	return map[string]any{"ownerReferences": refs}
}
