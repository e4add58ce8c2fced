package garbage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/events"
)

// observe finds out what a decision rests on, and not more.
func (c *collector) observe(ctx context.Context, g *graph, obj dependent) (seen, error) {
	s := seen{
		deleting:   obj.DeletionTimestamp != nil,
		orphaning:  slices.Contains(obj.Finalizers, metav1.FinalizerOrphanDependents),
		foreground: slices.Contains(obj.Finalizers, metav1.FinalizerDeleteDependents),
	}
	if s.deleting {
		if s.orphaning || s.foreground {
			c.observeDeleted(g, obj, &s)
		}
		return s, nil
	}
	waits := false
	for _, ref := range obj.OwnerReferences {
		o, err := c.owner(ctx, g, obj, ref)
		if err != nil {
			return s, fmt.Errorf("owner %s %s: %w", ref.Kind, ref.Name, err)
		}
		waits = waits || o.state == waiting
		s.owners = append(s.owners, o)
	}
	if waits {
		for d := range g.dependents(ownedIndex, obj.UID) {
			s.dependents = true
			if s.circle = foreground(d.object); s.circle {
				break
			}
		}
	}
	return s, nil
}

// observeDeleted finds out whether something holds up a deletion. One dependent is
// enough: its end has the object be looked at again.
func (c *collector) observeDeleted(g *graph, obj dependent, s *seen) {
	s.unsettled = !g.settled()
	for d := range g.dependents(blocksIndex, obj.UID) {
		_, heard := g.node(d.UID)
		s.blocked, s.unheard = true, !heard
		return
	}
}

// owner finds out about an owner: from what events told, or from the server.
func (c *collector) owner(ctx context.Context, g *graph, obj dependent, ref metav1.OwnerReference) (owner, error) {
	o := owner{uid: ref.UID}
	kind, r, ok := g.view.Load().resolve(ref)
	is := claim{kind: kind, key: client.Key{Name: ref.Name}, uid: ref.UID}
	if r.Namespaced {
		is.key.Namespace = obj.Namespace
	}
	switch {
	case r.Namespaced && obj.Namespace == "":
		o.state = misplaced
		c.tellElsewhere(g, obj, ref)
		return o, nil
	case g.orphaned.has(is):
		o.state = released
		return o, nil
	case g.gone.has(is):
		o.state = absent
		return o, nil
	case !ok:
		return c.undefined(ctx, g, o, is, r)
	}
	n, heard := g.node(ref.UID)
	if heard && n.key == is.key && n.kind.GroupResource() == r.GroupResource() {
		if found, ok := n.kind.in.Get(is.key.Namespace, is.key.Name); ok && found.UID == ref.UID {
			o.state = stateOf(found)
			return o, nil
		}
	}
	return c.ask(ctx, g, o, is, r, obj, ref)
}

// ask reads an owner from the server.
func (c *collector) ask(ctx context.Context, g *graph, o owner, is claim, r client.Resource, obj dependent, ref metav1.OwnerReference) (owner, error) {
	found, err := client.Of[*object](c.conn, client.Kind(r.GVK())).Get(ctx, is.key)
	switch {
	case err == nil && found.UID == ref.UID:
		o.state, o.unheard = stateOf(found), true
	case err == nil || missing(err):
		o.state = absent
		c.tellElsewhere(g, obj, ref)
		g.gone.add(is)
	case client.IsNoKind(err) || client.IsNotFound(err):
		o.state = unknown
	default:
		return o, err
	}
	return o, nil
}

// undefined is about an owner whose kind is not served: if that was custom and its
// definition is gone, then all its objects are.
func (c *collector) undefined(ctx context.Context, g *graph, o owner, is claim, was client.Resource) (owner, error) {
	o.state = unknown
	if was.Resource == "" {
		return o, nil
	}
	_, err := client.Of[*object](c.conn, client.Kind(definition)).Get(ctx, client.Key{Name: was.GroupResource().String()})
	switch {
	case missing(err):
		o.state = absent
		g.gone.add(is)
	case err != nil:
		return o, err
	}
	return o, nil
}

// resolve finds the resource of an owner. If it is not served, it is the one that a
// definition had, or none.
func (v *view) resolve(ref metav1.OwnerReference) (schema.GroupKind, client.Resource, bool) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return schema.GroupKind{Kind: ref.Kind}, client.Resource{}, false
	}
	gk := schema.GroupKind{Group: gv.Group, Kind: ref.Kind}
	if r, ok := v.served[gv.WithKind(ref.Kind)]; ok {
		return gk, r, true
	}
	return gk, v.defined[gk], false
}

func stateOf(o *object) ownerState {
	if foreground(o) {
		return waiting
	}
	return solid
}

// tellElsewhere tells of an owner that exists in another namespace than it has to.
func (c *collector) tellElsewhere(g *graph, obj dependent, ref metav1.OwnerReference) {
	n, ok := g.node(ref.UID)
	if !ok || n.key.Namespace == "" || n.key.Namespace == obj.Namespace {
		return
	}
	c.told.Event(&corev1.ObjectReference{
		APIVersion: obj.kind.GroupVersion().String(), Kind: obj.kind.Kind,
		Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID,
	}, events.Warning, "OwnerRefInvalidNamespace", "ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
		ref.APIVersion, ref.Kind, obj.Namespace, ref.Name, ref.UID, obj.Namespace)
}

// missing reports whether the server said that an object does not exist, and not
// that it does not know the kind.
func missing(err error) bool {
	var status apierrors.APIStatus
	if !client.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	if d == nil || d.Name == "" {
		return false
	}
	return !slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}
