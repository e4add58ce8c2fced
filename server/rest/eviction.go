package rest

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/even-keel/evenkeel/server/watch"
)

// evict deletes a pod, if the budget that it counts in allows one fewer.
func (c *call) evict() error {
	var e policyv1.Eviction
	if err := c.decodeInto(policyv1.SchemeGroupVersion.WithKind("Eviction"), &e); err != nil {
		return err
	}
	if e.Name != "" && e.Name != c.target.name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	o := metav1.DeleteOptions{}
	if e.DeleteOptions != nil {
		o = *e.DeleteOptions
	}
	if dryRun := c.query["dryRun"]; len(dryRun) > 0 {
		o.DryRun = dryRun
	}
	current, err := c.current()
	if err != nil {
		return err
	}
	obj, err := c.res.decoded(current)
	if err != nil {
		return err
	}
	pod := obj.(*corev1.Pod)
	if err := c.checkPreconditions(pod, o.Preconditions); err != nil {
		return err
	}
	if counts(pod) {
		if err := c.spendBudget(pod, len(o.DryRun) > 0); err != nil {
			return err
		}
	}
	if len(o.DryRun) == 0 && pod.DeletionTimestamp == nil {
		if err := c.markEvicted(); err != nil {
			return err
		}
	}
	if err := c.deleteOne(o); err != nil {
		return err
	}
	return c.created()
}

// counts says that the end of a pod would be a disruption.
func counts(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return false
	}
	return pod.DeletionTimestamp == nil
}

// markEvicted says in the pod's status why it ends.
func (c *call) markEvicted() error {
	return c.change(change{
		intent: c.intent(nil, "", ""), subresource: "status", lenient: true,
		make: func(old runtime.Object) (runtime.Object, error) {
			setCondition(old.(*corev1.Pod), corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.api.now()),
				ObservedGeneration: accessor(old).GetGeneration(),
				Reason:             "EvictionByEvictionAPI", Message: "Eviction API: evicting",
			})
			return old, nil
		},
		answer: func(runtime.Object) error { return nil },
	})
}

func setCondition(pod *corev1.Pod, wanted corev1.PodCondition) {
	for i, c := range pod.Status.Conditions {
		if c.Type == wanted.Type {
			pod.Status.Conditions[i] = wanted
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, wanted)
}

// budgetWait is when to ask again for what a budget does not allow yet.
const budgetWait = 10 * time.Second

// maxDisrupted bounds how many pods a budget remembers to be on their way.
const maxDisrupted = 2000

// spendBudget takes one pod from the budget that it counts in.
func (c *call) spendBudget(pod *corev1.Pod, dryRun bool) error {
	budget, err := c.budgetOf(pod)
	if err != nil || budget == nil {
		return err
	}
	if budget.Spec.UnhealthyPodEvictionPolicy != nil && !ready(pod) {
		healthyEnough := budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0
		if *budget.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow || healthyEnough {
			return nil
		}
	}
	of := *c
	of.res = c.api.registry.stored(policyv1.GroupName, "poddisruptionbudgets")
	of.target.name, of.target.subresource = budget.Name, "status"
	in := c.intent(nil, "", "")
	in.dryRun = dryRun
	return of.change(change{
		intent: in, subresource: "status", lenient: true,
		make: func(old runtime.Object) (runtime.Object, error) {
			return old, c.spend(old.(*policyv1.PodDisruptionBudget), pod.Name)
		},
		answer: func(runtime.Object) error { return nil },
	})
}

func (c *call) spend(b *policyv1.PodDisruptionBudget, pod string) error {
	switch {
	case b.Status.ObservedGeneration < b.Generation:
		return tooManyEvictions(fmt.Sprintf("The disruption budget %s is still being processed by the server.", b.Name))
	case b.Status.DisruptionsAllowed < 0:
		return apierrors.NewForbidden(policyv1.Resource("poddisruptionbudget"), b.Name, errors.New("pdb disruptions allowed is negative"))
	case len(b.Status.DisruptedPods) > maxDisrupted:
		return apierrors.NewForbidden(policyv1.Resource("poddisruptionbudget"), b.Name, errors.New("DisruptedPods map too big - too many evictions not confirmed by PDB controller"))
	case b.Status.DisruptionsAllowed == 0:
		return tooManyEvictions(fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy))
	}
	b.Status.DisruptionsAllowed--
	if b.Status.DisruptionsAllowed == 0 {
		b.Status.Conditions = withoutDisruptions(b, metav1.NewTime(c.api.now()))
	}
	if b.Status.DisruptedPods == nil {
		b.Status.DisruptedPods = map[string]metav1.Time{}
	}
	b.Status.DisruptedPods[pod] = metav1.NewTime(c.api.now())
	return nil
}

// withoutDisruptions is the conditions of a budget that is spent.
func withoutDisruptions(b *policyv1.PodDisruptionBudget, now metav1.Time) []metav1.Condition {
	spent := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
		ObservedGeneration: b.Status.ObservedGeneration, LastTransitionTime: now,
	}
	for i, c := range b.Status.Conditions {
		if c.Type == spent.Type {
			b.Status.Conditions[i] = spent
			return b.Status.Conditions
		}
	}
	return append(b.Status.Conditions, spent)
}

func tooManyEvictions(cause string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", int(budgetWait/time.Second))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: cause})
	return err
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// budgetOf returns the one budget that a pod counts in, or nil.
func (c *call) budgetOf(pod *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	r := c.api.registry.stored(policyv1.GroupName, "poddisruptionbudgets")
	var found []*policyv1.PodDisruptionBudget
	var failed error
	r.objects.Snapshot().Scan(pod.Namespace, "", func(o *watch.Object) bool {
		var obj runtime.Object
		if obj, failed = r.decoded(o); failed != nil {
			return false
		}
		b := obj.(*policyv1.PodDisruptionBudget)
		var s labels.Selector
		if s, failed = metav1.LabelSelectorAsSelector(b.Spec.Selector); failed != nil {
			return false
		}
		if s.Matches(labels.Set(pod.Labels)) {
			found = append(found, b)
		}
		return true
	})
	switch {
	case failed != nil:
		return nil, failed
	case len(found) == 0:
		return nil, nil
	case len(found) > 1:
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		}}
	}
	return found[0], nil
}
