package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/even-keel/evenkeel/client"
)

// Outcome is what became of an object.
type Outcome string

// The outcomes of [CreateOrUpdate] and [CreateOrPatch].
const (
	Unchanged Outcome = "unchanged"
	Created   Outcome = "created"
	Updated   Outcome = "updated"
)

// upsertTries is how often an object is read anew, when somebody else was faster.
const upsertTries = 3

// CreateOrUpdate makes an object what change says: it creates it if it does not
// exist, and otherwise updates it if change changed something. change is called with
// the object as it is, or with obj itself, of which otherwise only the name counts;
// it may be called again if somebody else writes meanwhile. The status is left alone,
// where it is a subresource.
//
// Fields that servers fill in are there when change is called: one that sets them to
// something else each time makes a hot loop. [Apply] has not that problem.
func CreateOrUpdate[T client.Object](ctx context.Context, c *client.Client[T], obj T, change func(T) error) (T, Outcome, error) {
	return upsert(ctx, c, obj, change, writer[T]{
		create: func(obj T) (T, error) { return c.Create(ctx, obj) },
		update: func(_, after T) (T, error) { return c.Update(ctx, after) },
	})
}

// CreateOrPatch is [CreateOrUpdate], but sends only what differs, as a merge patch,
// and the status too, where that is a subresource. Lists are sent whole.
func CreateOrPatch[T client.Object](ctx context.Context, c *client.Client[T], obj T, change func(T) error) (T, Outcome, error) {
	return upsert(ctx, c, obj, change, writer[T]{
		create: func(obj T) (T, error) {
			made, err := c.Create(ctx, obj)
			if err != nil {
				return made, err
			}
			return patchStatus(ctx, c, made, obj)
		},
		update: func(before, after T) (T, error) { return patchBoth(ctx, c, before, after) },
	})
}

// writer is how an object is written.
type writer[T client.Object] struct {
	create func(T) (T, error)
	update func(before, after T) (T, error)
}

func upsert[T client.Object](ctx context.Context, c *client.Client[T], obj T, change func(T) error, write writer[T]) (T, Outcome, error) {
	key, from := client.KeyOf(obj), c
	for try := 1; ; try++ {
		now, outcome, err := upsertOnce(ctx, from, obj, change, write)
		if try == upsertTries || !client.IsConflict(err) && !client.IsAlreadyExists(err) && !(outcome == Updated && client.IsNotFound(err)) {
			if err != nil {
				return now, Unchanged, fmt.Errorf("create or update %s: %w", key, err)
			}
			return now, outcome, nil
		}
		from = c.Live() // the cache is behind
	}
}

func upsertOnce[T client.Object](ctx context.Context, from *client.Client[T], obj T, change func(T) error, write writer[T]) (T, Outcome, error) {
	key := client.KeyOf(obj)
	before, err := from.Get(ctx, key)
	if client.IsNotFound(err) {
		made := obj.DeepCopyObject().(T)
		if err := changed(made, key, change); err != nil {
			return obj, Unchanged, err
		}
		made, err = write.create(made)
		return made, Created, err
	}
	if err != nil {
		return obj, Unchanged, err
	}
	after := before.DeepCopyObject().(T)
	if err := changed(after, key, change); err != nil {
		return obj, Unchanged, err
	}
	if equality.Semantic.DeepEqual(before, after) {
		return before, Unchanged, nil
	}
	after, err = write.update(before, after)
	return after, Updated, err
}

// changed calls change, which must leave the name alone.
func changed[T client.Object](obj T, key Key, change func(T) error) error {
	if err := change(obj); err != nil {
		return err
	}
	if now := client.KeyOf(obj); now != key && (key.Namespace != "" || now.Name != key.Name) {
		return fmt.Errorf("the function renamed %s to %s: %w", key, now, ErrOption)
	}
	return nil
}

// patchBoth patches an object, and then its status.
func patchBoth[T client.Object](ctx context.Context, c *client.Client[T], before, after T) (T, error) {
	d, err := diff(before, after, false)
	if err != nil {
		return before, err
	}
	now := before
	if len(d) > 0 {
		if now, err = c.Patch(ctx, client.KeyOf(before), conditional(d, before)); err != nil {
			return now, err
		}
	}
	return patchStatus(ctx, c, now, after)
}

// patchStatus patches the status of an object to be that of another.
func patchStatus[T client.Object](ctx context.Context, c *client.Client[T], now, wanted T) (T, error) {
	d, err := diff(now, wanted, true)
	if err != nil || len(d) == 0 {
		return now, err
	}
	return c.Status().Patch(ctx, client.KeyOf(now), conditional(d, now))
}

// diff is the merge patch from one object to another: of the status, or of all else.
func diff(before, after runtime.Object, status bool) (map[string]any, error) {
	was, err := fieldsOf(before)
	if err != nil {
		return nil, err
	}
	is, err := fieldsOf(after)
	if err != nil {
		return nil, err
	}
	for _, fields := range []map[string]any{was, is} {
		maps.DeleteFunc(fields, func(name string, _ any) bool { return (name == "status") != status })
	}
	return mergeDiff(was, is), nil
}

// conditional makes a patch fail unless the object is as it was read.
func conditional(d map[string]any, on client.Object) client.Patch {
	m, _ := d["metadata"].(map[string]any)
	m = maps.Clone(m)
	if m == nil {
		m = map[string]any{}
	}
	m["resourceVersion"] = on.GetResourceVersion()
	d = maps.Clone(d)
	d["metadata"] = m
	return client.MergePatch(d)
}

func fieldsOf(obj runtime.Object) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	var out map[string]any
	return out, json.Unmarshal(data, &out)
}

// mergeDiff is the merge patch that makes one object of another.
func mergeDiff(was, is map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range is {
		old, there := was[k]
		if there && reflect.DeepEqual(old, v) {
			continue
		}
		oldMap, ok1 := old.(map[string]any)
		newMap, ok2 := v.(map[string]any)
		if ok1 && ok2 {
			out[k] = mergeDiff(oldMap, newMap)
			continue
		}
		out[k] = v
	}
	for k := range was {
		if _, there := is[k]; !there {
			out[k] = nil
		}
	}
	return out
}

// Apply has owner control an object, and applies it: the object becomes what obj
// says, fields of other managers stay, and what this manager no longer says goes. It
// takes fields over from managers that have them too. If the object exists and has
// another controller or none, the error is [ErrOwned], and nothing is written.
//
// Where Go's zero values say too much, use apply configurations: see
// [client.ApplyPatch].
func Apply[T client.Object](ctx context.Context, c *client.Client[T], owner client.Object, obj T, opts ...client.WriteOption) (T, error) {
	key := client.KeyOf(obj)
	there, err := c.Get(ctx, key)
	switch {
	case err == nil:
		if err := Control(c, owner, there.DeepCopyObject().(T)); err != nil {
			return there, fmt.Errorf("apply %s: %w", key, err)
		}
	case !client.IsNotFound(err):
		return obj, fmt.Errorf("apply %s: %w", key, err)
	}
	wanted := obj.DeepCopyObject().(T)
	if err := SetController(c, owner, wanted); err != nil {
		return obj, fmt.Errorf("apply %s: %w", key, err)
	}
	now, err := c.Apply(ctx, wanted, append([]client.WriteOption{client.Force()}, opts...)...)
	if err != nil {
		return obj, fmt.Errorf("apply %s: %w", key, err)
	}
	return now, nil
}
