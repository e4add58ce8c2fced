package namespace

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
)

// object is all that is read of what is deleted.
type object = metav1.PartialObjectMetadata

// atOnce is how many resources of a namespace are deleted at the same time.
const atOnce = 8

var pods = corev1.SchemeGroupVersion.WithResource("pods")

// round is one of several in which a namespace is emptied.
type round struct {
	conn      *client.Conn
	namespace string

	mu sync.Mutex
	seen
}

// empty deletes what is in a namespace, and tells what is left.
func empty(ctx context.Context, conn *client.Conn, namespace string) seen {
	e := &round{conn: conn, namespace: namespace, seen: seen{remaining: map[schema.GroupVersionResource]int{}, finalizers: map[string]int{}}}
	served, err := conn.Served(ctx)
	if err != nil {
		e.discovery = err
		return e.seen
	}
	e.stale = served.Stale
	all := deletable(served)
	if i := slices.IndexFunc(all, func(r client.ServedResource) bool { return r.GroupVersionResource == pods }); i >= 0 {
		e.delete(ctx, all[i])
		if len(e.remaining)+len(e.failures) > 0 {
			return e.seen
		}
		all = slices.Delete(all, i, i+1)
	}
	var work errgroup.Group
	work.SetLimit(atOnce)
	for _, r := range all {
		work.Go(func() error {
			e.delete(ctx, r)
			return nil
		})
	}
	_ = work.Wait()
	return e.seen
}

// deletable are the resources in namespaces that can be deleted, each in the version
// that the server likes best.
func deletable(served client.Served) []client.ServedResource {
	var out []client.ServedResource
	had := map[schema.GroupResource]bool{}
	for _, r := range served.Resources {
		if r.Namespaced && r.Can("list", "delete") && !had[r.GroupResource()] {
			had[r.GroupResource()] = true
			out = append(out, r)
		}
	}
	return out
}

// delete deletes the objects of a resource, and notes what is left.
func (e *round) delete(ctx context.Context, r client.ServedResource) {
	objects := client.Of[*object](e.conn, client.Kind(r.GVK())).In(e.namespace)
	left, err := list(ctx, objects)
	if err == nil && len(left) > 0 {
		err = deleteAll(ctx, objects, r, left)
		var again error
		if left, again = list(ctx, objects); err == nil {
			err = again
		}
	}
	if err != nil {
		err = fmt.Errorf("%s of namespace %s: %w", r.GroupResource(), e.namespace, err)
	} else if len(left) > 0 && r.GroupVersionResource != pods && !slices.ContainsFunc(left, isHeld) {
		err = fmt.Errorf("unexpected items still remain in namespace: %s for gvr: %v", e.namespace, r.GroupVersionResource)
	}
	e.note(r, left, err)
}

// isHeld says why an object is still there after it was deleted. Pods need no
// finalizer for that: they are given time to end.
func isHeld(o *object) bool { return len(o.Finalizers) > 0 }

func (e *round) note(r client.ServedResource, left []*object, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.failures = append(e.failures, err)
	}
	if len(left) > 0 {
		e.remaining[r.GroupVersionResource] = len(left)
	}
	for _, o := range left {
		for _, f := range o.Finalizers {
			e.finalizers[f]++
		}
	}
}

// list returns what there is; of a kind that is not served any more, nothing.
func list(ctx context.Context, objects *client.Client[*object]) ([]*object, error) {
	all, _, err := objects.All(ctx, client.Chunk(500))
	if client.IsNoKind(err) || client.IsNotFound(err) {
		return nil, nil
	}
	return all, err
}

// deleteAll deletes objects that are not being deleted yet. Their dependents are
// deleted with the rest.
func deleteAll(ctx context.Context, objects *client.Client[*object], r client.ServedResource, all []*object) error {
	all = slices.DeleteFunc(all, func(o *object) bool { return o.DeletionTimestamp != nil })
	if len(all) == 0 {
		return nil
	}
	policy := client.Propagation(metav1.DeletePropagationBackground)
	if r.Can("deletecollection") {
		if err := objects.DeleteCollection(ctx, policy); !apierrors.IsMethodNotSupported(err) {
			return client.IgnoreNotFound(err)
		}
	}
	for _, o := range all {
		if err := objects.Delete(ctx, client.KeyOf(o), client.IfUID(o.UID), policy); client.IgnoreNotFound(err) != nil && !client.IsConflict(err) {
			return err
		}
	}
	return nil
}
