package rest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/server/custom"
	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

// cleaners delete the objects of definitions that are being deleted.
type cleaners struct {
	definitions *definitions
	group       *sync.WaitGroup

	mu   sync.Mutex
	busy map[string]bool
}

// cleanAgain is how long it takes until what failed is tried again.
const cleanAgain = time.Second

// start has the objects of a definition deleted, unless they are being.
func (c *cleaners) start(ctx context.Context, def *custom.Definition) {
	name := def.Metadata.Name
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[name] {
		return
	}
	c.busy[name] = true
	c.group.Go(func() {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.busy, name)
		}()
		for ctx.Err() == nil {
			err := c.definitions.clean(ctx, def)
			if err == nil {
				return
			}
			if ctx.Err() == nil {
				c.definitions.api.log.Warn("the objects of a custom resource definition were not deleted; trying again", "name", name, "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(cleanAgain):
			}
		}
	})
}

// clean deletes all objects of a definition, waits until they are gone, and lets
// the definition go.
func (d *definitions) clean(ctx context.Context, def *custom.Definition) error {
	name := def.Metadata.Name
	if !def.Served() {
		return d.terminate(ctx, name, true, "NeverEstablished", "resource was never established")
	}
	if err := d.terminate(ctx, name, false, "InstanceDeletionInProgress", "CustomResource deletion is in progress"); err != nil {
		return err
	}
	if err := d.deleteObjects(ctx, def); err != nil {
		told := d.terminate(ctx, name, false, "InstanceDeletionFailed", fmt.Sprintf("could not issue all deletes: %v", err))
		return errors.Join(err, told)
	}
	if err := d.awaitNone(ctx, name); err != nil {
		return err
	}
	return d.terminate(ctx, name, true, "InstanceDeletionCompleted", "removed all instances")
}

// deleteObjects deletes what there is of a custom resource.
func (d *definitions) deleteObjects(ctx context.Context, def *custom.Definition) error {
	r := d.api.storedVersion(def)
	if r == nil {
		return nil // the server has a kind of its own there
	}
	var failed error
	r.objects.Snapshot().Scan("", "", func(o *watch.Object) bool {
		c, err := d.api.ownCall(ctx, r, o.Namespace, o.Name)
		if err == nil {
			err = c.deleteOne(metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			failed = errors.Join(failed, fmt.Errorf("delete %s/%s: %w", o.Namespace, o.Name, err))
		}
		return ctx.Err() == nil
	})
	return failed
}

// storedVersion returns what serves, or would serve, the version in which objects
// of a definition are stored: none of these must be converted to be deleted, by a
// webhook that may have been deleted before.
func (a *API) storedVersion(def *custom.Definition) *resource {
	versions := def.Versions()
	for _, v := range versions {
		if v.Kind.GVK.GroupVersion() != v.Stored {
			continue
		}
		r := a.versionResource(v)
		if r != nil {
			r.types = a.customTypes(versions, def.Spec.PreserveUnknownFields)
		}
		return r
	}
	return nil
}

// awaitNone waits until there are no objects left.
func (d *definitions) awaitNone(ctx context.Context, storageName string) error {
	objects := d.api.hub.Resource(storageName)
	for {
		snapshot := objects.Snapshot()
		if snapshot.Len() == 0 {
			return nil
		}
		cursor := objects.Watch(snapshot.Revision)
		_, err := cursor.Next(ctx)
		cursor.Close()
		if err != nil && !errors.Is(err, storage.ErrCompacted) {
			return err
		}
	}
}

// terminate says how far a definition's deletion is, and ends it when done.
func (d *definitions) terminate(ctx context.Context, name string, done bool, reason, message string) error {
	for {
		o := d.resource().objects.Get("", name)
		if o == nil {
			return nil
		}
		written, err := d.edit(ctx, o, func(crd *storedDefinition) {
			crd.Status = custom.Terminate(crd.Status, done, reason, message, metav1.NewTime(d.api.now()))
			if done {
				crd.Metadata.Finalizers = slices.DeleteFunc(crd.Metadata.Finalizers, func(f string) bool { return f == apiextensionsv1.CustomResourceCleanupFinalizer })
			}
		})
		if err != nil {
			return fmt.Errorf("write the status of %s: %w", name, err)
		}
		if written {
			return nil
		}
	}
}
