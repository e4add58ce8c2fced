package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

// controllerIndex has objects by the UID of their controller, and those without one
// by their namespace.
const controllerIndex = "evenkeel.controller"

// ByController has [Controlled] find a source's objects in the cache.
func ByController[T client.Object]() SourceOption {
	return With(informer.Index(controllerIndex, func(obj T) []string {
		if c := metav1.GetControllerOfNoCopy(obj); c != nil {
			return []string{string(c.UID)}
		}
		return []string{orphansOf(obj.GetNamespace())}
	}))
}

func orphansOf(namespace string) string { return "orphans/" + namespace }

// Controlled returns the objects of a namespace whose controller has a UID. Their
// kind has to be watched with [ByController] or [Claims].
func Controlled[T client.Object](ctx context.Context, objects *client.Client[T], namespace string, by types.UID) ([]T, error) {
	return indexed(ctx, objects.In(namespace), string(by))
}

func indexed[T client.Object](ctx context.Context, objects *client.Client[T], value string) ([]T, error) {
	var out []T
	for obj, err := range objects.List(ctx, client.Field(controllerIndex, value)) {
		if err != nil {
			return nil, fmt.Errorf("list what %s controls: %w", value, err)
		}
		out = append(out, obj)
	}
	return out, nil
}

// Claims is [Owns] for kinds that select what they own: the controller hears of
// objects that are controlled by one of its own kind O, and of those that have no
// controller and that one of them selects. [Claim] makes them its own.
func Claims[T, O client.Object](selector func(O) (labels.Selector, error), opts ...SourceOption) Option {
	return func(c *Controller) {
		opts = append(opts, ByController[T](), Where(mayConcern[T]))
		s := newSource[T](opts)
		s.role = "claims"
		s.keys = func(ctx context.Context, obj T) []Key {
			if metav1.GetControllerOfNoCopy(obj) != nil {
				return c.owners(ctx, obj, false)
			}
			return suitors(ctx, c, obj, selector)
		}
		c.sources = append(c.sources, s)
	}
}

// mayConcern leaves out changes of orphans that make no difference to who may claim
// them.
func mayConcern[T client.Object](old, now T) bool {
	var none T
	if any(old) == any(none) || any(now) == any(none) {
		return true
	}
	orphan := metav1.GetControllerOfNoCopy(old) == nil && metav1.GetControllerOfNoCopy(now) == nil
	return !orphan || !labels.Equals(old.GetLabels(), now.GetLabels())
}

// suitors are the keys of those who select an orphan.
func suitors[T, O client.Object](ctx context.Context, c *Controller, orphan T, selector func(O) (labels.Selector, error)) []Key {
	of, ok := c.primary.(*source[O])
	if !ok || len(orphan.GetLabels()) == 0 {
		return nil
	}
	var out []Key
	for owner, err := range of.client.In(orphan.GetNamespace()).List(ctx) {
		if err != nil {
			return out // its kind is not served, or the controller ends
		}
		if s, err := selector(owner); err == nil && !s.Empty() && s.Matches(labels.Set(orphan.GetLabels())) {
			out = append(out, client.KeyOf(owner))
		}
	}
	return out
}

// Claim returns the objects of an owner's namespace that it controls and selects.
// Before, it makes the owner the controller of those that it selects and that have
// none, and gives up those that it no longer selects. Objects for which wants is
// false are left alone; nil wants all. Both kinds have to be the controller's, by
// [For] and [Claims].
//
// Nothing is adopted by an owner that is being deleted, of which the server is
// asked before the first adoption. What others are faster with is left to them.
func Claim[O, T client.Object](ctx context.Context, owners *client.Client[O], owner O, objects *client.Client[T], selector labels.Selector, wants func(T) bool) ([]T, error) {
	c := claim[O, T]{owners: owners, owner: owner, objects: objects}
	all, err := Controlled(ctx, objects, owner.GetNamespace(), owner.GetUID())
	if err != nil {
		return nil, err
	}
	orphans, err := indexed(ctx, objects.In(owner.GetNamespace()), orphansOf(owner.GetNamespace()))
	if err != nil {
		return nil, err
	}
	var out []T
	for _, obj := range append(all, orphans...) {
		if wants != nil && !wants(obj) {
			continue
		}
		now, mine, err := c.settle(ctx, obj, !selector.Empty() && selector.Matches(labels.Set(obj.GetLabels())))
		if err != nil {
			return nil, err
		}
		if mine {
			out = append(out, now)
		}
	}
	return out, nil
}

// claim is what one owner does.
type claim[O, T client.Object] struct {
	owners  *client.Client[O]
	owner   O
	objects *client.Client[T]
	live    bool // the server has said that the owner is not being deleted
}

// settle says whether an object is the owner's, and makes that so.
func (c *claim[O, T]) settle(ctx context.Context, obj T, selected bool) (T, bool, error) {
	controlled, leaving := Controls(c.owner, obj), c.owner.GetDeletionTimestamp() != nil
	switch {
	case controlled && selected:
		return obj, true, nil
	case controlled && !leaving:
		return obj, false, c.release(ctx, obj)
	case controlled, !selected, leaving, obj.GetDeletionTimestamp() != nil:
		return obj, false, nil
	}
	return c.adopt(ctx, obj)
}

func (c *claim[O, T]) adopt(ctx context.Context, obj T) (T, bool, error) {
	if err := c.check(ctx); err != nil {
		return obj, false, fmt.Errorf("adopt %s: %w", client.KeyOf(obj), err)
	}
	kind, err := c.owners.Conn().KindOf(c.owner)
	if err != nil {
		return obj, false, fmt.Errorf("adopt %s: %w", client.KeyOf(obj), err)
	}
	now, err := c.patch(ctx, obj, *metav1.NewControllerRef(c.owner, kind))
	switch {
	case lost(err):
		return obj, false, nil
	case err != nil:
		return obj, false, fmt.Errorf("adopt %s: %w", client.KeyOf(obj), err)
	}
	return now, true, nil
}

func (c *claim[O, T]) release(ctx context.Context, obj T) error {
	_, err := c.patch(ctx, obj, map[string]any{"$patch": "delete", "uid": c.owner.GetUID()})
	if err != nil && !lost(err) {
		return fmt.Errorf("release %s: %w", client.KeyOf(obj), err)
	}
	return nil
}

// patch changes the one owner reference of the object that has obj's UID.
func (c *claim[O, T]) patch(ctx context.Context, obj T, ref any) (T, error) {
	return c.objects.Patch(ctx, client.KeyOf(obj), client.StrategicPatch(map[string]any{
		"metadata": map[string]any{"uid": obj.GetUID(), "ownerReferences": []any{ref}},
	}))
}

// lost reports whether an object is gone, is another by now, or has another
// controller.
func lost(err error) bool {
	return client.IsNotFound(err) || client.IsConflict(err) || client.IsInvalid(err)
}

// check asks the server, once, whether the owner may adopt.
func (c *claim[O, T]) check(ctx context.Context) error {
	if c.live {
		return nil
	}
	now, err := c.owners.Live().Get(ctx, client.KeyOf(c.owner))
	switch {
	case err != nil:
		return err
	case now.GetUID() != c.owner.GetUID() || now.GetDeletionTimestamp() != nil:
		return fmt.Errorf("as %s: %w", client.KeyOf(c.owner), ErrOwnerGone)
	}
	c.live = true
	return nil
}
