package rest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

// deleteOptions reads the options of a deletion from the body or the query.
func (c *call) deleteOptions() (metav1.DeleteOptions, error) {
	var o metav1.DeleteOptions
	body, err := readBody(c.r)
	if err != nil {
		return o, err
	}
	if len(body) == 0 {
		if err := params(c.query, &o); err != nil {
			return o, err
		}
	} else if err := c.decodeDeleteOptions(body, &o); err != nil {
		return o, err
	}
	if dryRun := c.query["dryRun"]; len(o.DryRun) == 0 && len(dryRun) > 0 {
		o.DryRun = dryRun
	}
	if c.res.storage == "jobs.batch" && o.PropagationPolicy == nil && o.OrphanDependents == nil {
		c.warn("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning")
	}
	return o, invalidOptions("DeleteOptions", metav1validation.ValidateDeleteOptions(&o))
}

func (c *call) decodeDeleteOptions(body []byte, o *metav1.DeleteOptions) error {
	decoder, ok := c.api.codec.decoder(contentType(c.r))
	if !ok {
		return errUnknownFormat()
	}
	gvk := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	gvk.Group = ""
	got, kind, err := decoder.Decode(body, &gvk, o)
	if runtime.IsNotRegisteredError(err) && kind != nil && kind.Kind == gvk.Kind {
		// Clients send them in the version of what they delete, which may be custom.
		if err := yaml.Unmarshal(body, o); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return nil
	}
	if err != nil && !runtime.IsStrictDecodingError(err) {
		return apierrors.NewBadRequest(err.Error())
	}
	if _, ok := got.(*metav1.DeleteOptions); !ok {
		return apierrors.NewBadRequest("decoded object cannot be converted to DeleteOptions")
	}
	return nil
}

// delete removes an object, or marks it for those who must agree.
func (c *call) delete() error {
	o, err := c.deleteOptions()
	if err != nil {
		return err
	}
	if err := c.admitDelete(); err != nil {
		return err
	}
	for {
		current, err := c.current()
		if err != nil {
			return err
		}
		d, err := c.tryDelete(current, o)
		if errors.Is(err, storage.ErrConflict) {
			continue // another writer was first
		}
		if err != nil {
			return err
		}
		return c.answerDelete(d)
	}
}

// deletion is what became of a deletion.
type deletion struct {
	object runtime.Object
	gone   bool
}

func (c *call) answerDelete(d deletion) error {
	if !d.gone || c.res.kind.DeleteReturnsObject {
		return c.answerObject(http.StatusOK, d.object)
	}
	m := accessor(d.object)
	return c.answerObject(http.StatusOK, success(0, &metav1.StatusDetails{
		Name: m.GetName(), Group: c.res.gvk.Group, Kind: c.res.kind.Resource, UID: m.GetUID(),
	}))
}

// tryDelete removes or marks an object that is as current shows it.
func (c *call) tryDelete(current *watch.Object, o metav1.DeleteOptions) (deletion, error) {
	obj, err := c.res.copyOf(current)
	if err != nil {
		return deletion{}, err
	}
	m := accessor(obj)
	if err := c.checkPreconditions(m, o.Preconditions); err != nil {
		return deletion{}, err
	}
	before := obj.DeepCopyObject()
	grace := c.gracePeriod(obj, o)
	if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); !ok {
		setPropagation(m, o, c.res.kind.Orphans)
	} else if crd.DeletionTimestamp == nil {
		kinds.MarkDefinitionDeleted(crd)
	}
	pending := grace > 0 || len(m.GetFinalizers()) > 0 || !c.finalized(obj)
	if pending || c.graceful() {
		c.markDeleted(obj, grace)
	}
	if len(o.DryRun) > 0 {
		return deletion{object: obj, gone: !pending}, nil
	}
	if !pending {
		rev, err := c.api.remove(c.ctx(), c.res, current)
		if err != nil {
			return deletion{}, err
		}
		c.api.free(nil, obj)
		m.SetResourceVersion(fmt.Sprint(rev))
		return deletion{object: obj, gone: true}, nil
	}
	if c.unchanged(obj, before) {
		return deletion{object: obj}, nil
	}
	stored, err := c.api.commit(c.ctx(), c.res, obj, current.Revision)
	if err != nil {
		return deletion{}, err
	}
	out, err := c.res.decoded(stored)
	return deletion{object: out}, err
}

func (c *call) checkPreconditions(m metav1.Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	gr := schema.GroupResource{Group: c.res.gvk.Group, Resource: c.res.gvk.Kind}
	if p.UID != nil && *p.UID != m.GetUID() {
		return apierrors.NewConflict(gr, m.GetName(), fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, m.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != m.GetResourceVersion() {
		return apierrors.NewConflict(gr, m.GetName(), fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, m.GetResourceVersion()))
	}
	return nil
}

// graceful says that objects of the kind are given time to end.
func (c *call) graceful() bool { return c.res.storage == "pods" }

// gracePeriod is how long an object has from now on. Only pods that run
// somewhere get any.
func (c *call) gracePeriod(obj runtime.Object, o metav1.DeleteOptions) int64 {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return 0
	}
	var grace int64 = 30
	switch {
	case o.GracePeriodSeconds != nil:
		grace = *o.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return 0
	}
	if grace < 0 {
		grace = 1
	}
	// A second deletion can only shorten the time.
	if left := pod.DeletionGracePeriodSeconds; left != nil && (o.GracePeriodSeconds == nil || *left < grace) {
		return *left
	}
	return grace
}

// markDeleted sets when an object is to be gone.
func (c *call) markDeleted(obj runtime.Object, grace int64) {
	m := accessor(obj)
	at := metav1.NewTime(c.api.now().Add(time.Duration(grace) * time.Second))
	if was := m.GetDeletionTimestamp(); was != nil {
		if left := m.GetDeletionGracePeriodSeconds(); left == nil || *left <= grace {
			return
		}
	} else if c.res.kind.HasGeneration && m.GetGeneration() > 0 && c.res.storage != definitionStorage {
		m.SetGeneration(m.GetGeneration() + 1)
	}
	m.SetDeletionTimestamp(&at)
	m.SetDeletionGracePeriodSeconds(&grace)
	switch obj := obj.(type) {
	case *corev1.Namespace:
		m.SetDeletionGracePeriodSeconds(nil)
		obj.Status.Phase = corev1.NamespaceTerminating
	case *apiextensionsv1.CustomResourceDefinition:
		m.SetDeletionGracePeriodSeconds(nil)
	}
}

// finalized says that nothing of the kind's own holds an object back.
func (c *call) finalized(obj runtime.Object) bool {
	ns, ok := obj.(*corev1.Namespace)
	return !ok || len(ns.Spec.Finalizers) == 0
}

// setPropagation turns the propagation policy into finalizers.
func setPropagation(m metav1.Object, o metav1.DeleteOptions, orphansByDefault bool) {
	policy := propagation(m, o, orphansByDefault)
	finalizers := slices.DeleteFunc(slices.Clone(m.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	switch policy {
	case metav1.DeletePropagationOrphan:
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	}
	m.SetFinalizers(finalizers)
}

func propagation(m metav1.Object, o metav1.DeleteOptions, orphansByDefault bool) metav1.DeletionPropagation {
	switch {
	case o.PropagationPolicy != nil:
		return *o.PropagationPolicy
	case o.OrphanDependents != nil:
		if *o.OrphanDependents {
			return metav1.DeletePropagationOrphan
		}
		return metav1.DeletePropagationBackground
	case slices.Contains(m.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(m.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	case orphansByDefault:
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}

// deleteCollection deletes what a list would show, and answers with it.
func (c *call) deleteCollection() error {
	o, err := c.deleteOptions()
	if err != nil {
		return err
	}
	lo, err := c.listOptions()
	if err != nil {
		return err
	}
	sel, err := c.selector(lo)
	if err != nil {
		return err
	}
	p, err := c.page(lo, sel)
	if err != nil {
		return err
	}
	for _, found := range p.objects {
		one := *c
		one.target.name, one.target.namespace = found.Name, found.Namespace
		if err := one.deleteOne(o); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return c.answerList(p)
}

func (c *call) deleteOne(o metav1.DeleteOptions) error {
	for {
		current, err := c.current()
		if err != nil {
			return err
		}
		if _, err = c.tryDelete(current, o); !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
}
