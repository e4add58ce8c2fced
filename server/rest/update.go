package rest

import (
	"errors"
	"maps"
	"net/http"
	"reflect"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/even-keel/evenkeel/server/patch"
	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

// update replaces an object, or one side of it.
func (c *call) update(subresource string) error { return c.updateSide(subresource, nil) }

// updateSide replaces what merge takes over; nil means what the subresource is
// about.
func (c *call) updateSide(subresource string, merge func(wanted, old runtime.Object) runtime.Object) error {
	o, err := c.updateOptions()
	if err != nil {
		return err
	}
	in := c.intent(o.DryRun, o.FieldManager, o.FieldValidation)
	obj, err := c.readObject(in)
	if err != nil {
		return err
	}
	m := accessor(obj)
	if err := c.checkNamespace(m); err != nil {
		return err
	}
	if err := c.checkName(m); err != nil {
		return err
	}
	ch := change{subresource: subresource, intent: in, replaces: true, made: true, merge: merge}
	ch.make = func(runtime.Object) (runtime.Object, error) {
		if rv := m.GetResourceVersion(); rv != "" && rv != "0" {
			return obj, nil // there is no second try
		}
		return obj.DeepCopyObject(), nil
	}
	if own := c.res.subresource(subresource); own != nil {
		ch.untracked = own.Untracked
	}
	if subresource == "" && c.res.kind.CreateOnUpdate {
		ch.create = func() error {
			if m.GetUID() != "" { // it was meant for one that is gone
				return apierrors.NewConflict(c.res.groupResource(), c.target.name, preconditionUID(c, m.GetUID(), ""))
			}
			m.SetResourceVersion("")
			return c.createObject(obj, in)
		}
	}
	return c.change(ch)
}

// change is a write of an object that exists.
type change struct {
	intent
	subresource string
	// make returns the wanted object; old is a copy of the present one, or nil if
	// made says that it is wanted whatever there is.
	made bool
	make func(old runtime.Object) (runtime.Object, error)
	// create, if not nil, is called when the object does not exist.
	create func() error
	// replaces says that the client sent the whole object.
	replaces bool
	// merge takes over only a part of the wanted object; nil means what the
	// subresource is about.
	merge func(wanted, old runtime.Object) runtime.Object
	// lenient says that validation is the caller's.
	lenient bool
	// untracked says that nobody comes to own the changed fields.
	untracked bool
	// answer, if not nil, sends the answer.
	answer func(obj runtime.Object) error
}

// dedupWhen says in a warning when owners were found to be named twice.
func (ch change) dedupWhen() string {
	if ch.replaces {
		return ""
	}
	return " after mutating admission happens"
}

// change makes a change, again as often as it loses a race that it need not
// have won: then somebody else has won it.
func (c *call) change(ch change) error {
	for {
		current, err := c.current()
		if err != nil {
			if ch.create == nil || !c.isMissing(err) {
				return err
			}
			if err = ch.create(); ch.applied && apierrors.IsAlreadyExists(err) {
				continue
			}
			return err
		}
		done, err := c.tryChange(ch, current)
		if errors.Is(err, storage.ErrConflict) {
			if !done.conditional {
				continue
			}
			return c.conflict()
		}
		if err != nil {
			return err
		}
		return c.answerChange(ch, done)
	}
}

func (c *call) isMissing(err error) bool { return reflect.DeepEqual(status(err), status(c.notFound())) }

// outcome is what became of a change.
type outcome struct {
	stored *watch.Object
	// unstored is the object of a dry run.
	unstored runtime.Object
	// conditional says that the client named the revision it had seen.
	conditional bool
}

func (c *call) answerChange(ch change, done outcome) error {
	if done.unstored == nil && ch.answer == nil {
		return c.answer(http.StatusOK, done.stored)
	}
	obj := done.unstored
	if obj == nil {
		var err error
		if obj, err = c.res.decoded(done.stored); err != nil {
			return err
		}
	}
	if ch.answer != nil {
		return ch.answer(obj)
	}
	return c.answerObject(http.StatusOK, obj)
}

func (c *call) tryChange(ch change, current *watch.Object) (outcome, error) {
	old, err := c.res.decoded(current)
	if err != nil {
		return outcome{}, err
	}
	var start runtime.Object
	if !ch.made {
		start = old.DeepCopyObject()
	}
	obj, err := ch.make(start)
	if err != nil {
		return outcome{}, err
	}
	done, err := c.checkRevision(ch, obj, old)
	if err != nil {
		return done, err
	}
	obj, release, err := c.prepareChange(ch, obj, old)
	if err != nil {
		return done, err
	}
	stored := false
	defer func() {
		if !stored {
			release()
		}
	}()
	if c.unchanged(obj, old) {
		outdated, err := c.res.outdated(c.ctx(), current, old)
		if err != nil || !outdated {
			done.stored = current
			return done, err
		}
	}
	if ch.dryRun {
		accessor(obj).SetResourceVersion(accessor(old).GetResourceVersion())
		done.unstored = obj
		return done, nil
	}
	if finished(accessor(obj)) && c.finalized(obj) {
		done.stored, err = c.removeChanged(obj, current)
	} else {
		done.stored, err = c.api.commit(c.ctx(), c.res, obj, current.Revision)
	}
	if err != nil {
		return done, err
	}
	stored = true
	current.Forget(decodedKey{}) // which few want of an object that has been replaced, and is large
	c.api.free(obj, old)
	return done, nil
}

// checkRevision compares what the client has seen with what there is.
func (c *call) checkRevision(ch change, obj, old runtime.Object) (outcome, error) {
	m, oldMeta := accessor(obj), accessor(old)
	if ch.replaces {
		if err := c.sameIdentity(m, oldMeta); err != nil {
			return outcome{}, err
		}
	}
	rv := m.GetResourceVersion()
	conditional := ch.replaces && rv != "" || rv != oldMeta.GetResourceVersion()
	switch {
	case rv == "" || rv == "0":
		if ch.replaces && c.res.kind.NeedsRevision {
			return outcome{}, apierrors.NewInvalid(schema.GroupKind{Group: c.res.gvk.Group, Kind: c.res.kind.Resource}, m.GetName(), field.ErrorList{
				field.Invalid(metadataPath.Child("resourceVersion"), fieldRevision(rv), "must be specified for an update"),
			})
		}
		return outcome{}, nil
	case rv != oldMeta.GetResourceVersion():
		if _, err := strconv.ParseUint(rv, 10, 64); err != nil {
			return outcome{}, err
		}
		return outcome{conditional: true}, storage.ErrConflict
	}
	return outcome{conditional: conditional}, nil
}

// fieldRevision is a revision as validation errors show it.
func fieldRevision(rv string) any {
	if rv == "" {
		return uint64(0)
	}
	return rv
}

// prepareChange fills in, merges and checks the changed object. Call release if
// it is not stored after all.
func (c *call) prepareChange(ch change, wanted, old runtime.Object) (obj runtime.Object, release func(), err error) {
	k := c.res.kind
	c.dedupOwners(accessor(wanted), ch.dedupWhen())
	if k.Default != nil {
		k.Default(wanted)
	}
	switch {
	case ch.untracked:
		accessor(wanted).SetManagedFields(accessor(old).GetManagedFields())
	case !ch.applied:
		if err := c.trackFields(old, wanted, ch.manager, ch.subresource); err != nil {
			return nil, nil, err
		}
	}
	obj = c.mergeChange(ch, wanted, old)
	accessor(obj).SetManagedFields(accessor(wanted).GetManagedFields())
	keepSystemFields(accessor(obj), accessor(old))
	if release, err = c.allocate(obj, old, ch.dryRun); err != nil {
		return nil, nil, err
	}
	if err := c.finishChange(ch, obj, old); err != nil {
		release()
		return nil, nil, err
	}
	return obj, release, nil
}

// finishChange sets what follows from the change, and checks the result.
func (c *call) finishChange(ch change, obj, old runtime.Object) error {
	k := c.res.kind
	switch {
	case ch.subresource == "" && k.PrepareUpdate != nil:
		k.PrepareUpdate(obj, old)
	case ch.subresource == "status" && k.PrepareStatus != nil:
		k.PrepareStatus(obj, old)
	}
	if k.HasGeneration && ch.subresource != "status" && ch.subresource != "binding" && !sameWish(obj, old) {
		accessor(obj).SetGeneration(accessor(old).GetGeneration() + 1)
	}
	if ch.lenient {
		return nil
	}
	if err := c.res.validateChange(obj, old, ch.subresource); err != nil {
		return err
	}
	if ch.subresource == "" && k.Warnings != nil {
		for _, w := range k.Warnings(obj, old) {
			c.warn(w)
		}
	}
	return nil
}

// mergeChange takes over from the wanted object what its endpoint is about.
func (c *call) mergeChange(ch change, obj, old runtime.Object) runtime.Object {
	switch {
	case ch.merge != nil:
		return ch.merge(obj, old)
	case ch.subresource == "status":
		return mergeStatus(obj, old)
	case c.res.kind.HasStatus:
		keepStatus(obj, old)
	}
	return obj
}

// mergeStatus takes over the status and, as the real server does for most
// kinds, labels, annotations and finalizers.
func mergeStatus(obj, old runtime.Object) runtime.Object {
	merged := old.DeepCopyObject()
	keepStatus(merged, obj)
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return merged
	}
	m, from := accessor(merged), accessor(obj)
	if _, ok := obj.(*appsv1.Deployment); !ok {
		m.SetLabels(from.GetLabels())
	}
	m.SetAnnotations(from.GetAnnotations())
	m.SetFinalizers(from.GetFinalizers())
	return merged
}

// keepSystemFields carries over what no client may change. Where clients are
// told that they may not, what they sent is left for validation.
func keepSystemFields(m, old metav1.Object) {
	if m.GetUID() == "" {
		m.SetUID(old.GetUID())
	}
	m.SetCreationTimestamp(old.GetCreationTimestamp())
	m.SetGeneration(old.GetGeneration())
	m.SetSelfLink(old.GetSelfLink())
	if m.GetDeletionTimestamp() == nil {
		m.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if m.GetDeletionGracePeriodSeconds() == nil {
		m.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	m.SetResourceVersion(old.GetResourceVersion())
}

// sameWish reports whether two objects ask for the same: they differ at most in
// metadata and status.
func sameWish(a, b runtime.Object) bool {
	if ua, ok := a.(*unstructured.Unstructured); ok {
		return sameBesidesMetadata(ua.Object, b.(*unstructured.Unstructured).Object)
	}
	va, vb := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range va.NumField() {
		switch va.Type().Field(i).Name {
		case "TypeMeta", "ObjectMeta", "Status":
			continue
		}
		if !equality.Semantic.DeepEqual(va.Field(i).Interface(), vb.Field(i).Interface()) {
			return false
		}
	}
	return true
}

// sameBesidesMetadata is about custom resources: if their status is not a part
// of its own, it is a wish like all else; if it is, both have the same.
func sameBesidesMetadata(a, b map[string]any) bool {
	a, b = maps.Clone(a), maps.Clone(b)
	delete(a, "metadata")
	delete(b, "metadata")
	return equality.Semantic.DeepEqual(a, b)
}

// unchanged reports whether a change changes nothing, so that the object keeps
// its revision; obj gets it.
func (c *call) unchanged(obj, old runtime.Object) bool {
	accessor(obj).SetResourceVersion(accessor(old).GetResourceVersion())
	return patch.SameButForTimes(obj, old)
}

// finished says that a deleted object waits for nobody any more.
func finished(m metav1.Object) bool {
	grace := m.GetDeletionGracePeriodSeconds()
	return m.GetDeletionTimestamp() != nil && len(m.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// removeChanged deletes an object with its last finalizer.
func (c *call) removeChanged(obj runtime.Object, current *watch.Object) (*watch.Object, error) {
	value, err := c.res.toStoredBytes(c.ctx(), obj)
	if err != nil {
		return nil, err
	}
	rev, err := c.api.remove(c.ctx(), c.res, current)
	if err != nil {
		return nil, err
	}
	c.api.free(nil, obj)
	return watch.NewObject(watch.Key(c.res.storage, current.Namespace, current.Name), value, rev)
}
