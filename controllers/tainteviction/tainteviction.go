// Package tainteviction deletes pods from nodes with taints of the effect NoExecute,
// once they no longer tolerate these.
//
// A reconcile looks at a pod and at the taints of its node. How long a pod tolerates
// them counts from when this process first saw that it does not for ever, and ends when
// the taints go: a program that starts anew gives pods their time again, for it cannot
// know yet how the nodes are.
package tainteviction

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/pods"
	"github.com/even-keel/evenkeel/events"
)

// Name is the controller's.
const Name = "tainteviction"

// workers is how many pods are worked on at once.
const workers = 8

// reason is that of all events.
const reason = "TaintManagerEviction"

// New returns the controller; clients come from the source, events go to the
// recorder.
func New(s client.Source, told *events.Recorder) *controller.Controller {
	r := &reconciler{
		pods: client.Of[*corev1.Pod](s), nodes: client.Of[*corev1.Node](s), told: told, since: map[client.Key]start{},
	}
	return controller.New(Name, r.reconcile,
		controller.For[*corev1.Pod](pods.ByNode(), controller.Where(concerns)),
		controller.Watches(r.podsOn, controller.Where(tainted)),
		controller.Workers(workers))
}

type reconciler struct {
	pods  *client.Client[*corev1.Pod]
	nodes *client.Client[*corev1.Node]
	told  *events.Recorder

	mu    sync.Mutex
	since map[client.Key]start
}

// start is when it began that a pod does not tolerate the taints of its node for ever.
type start struct {
	pod types.UID
	at  time.Time
}

// concerns leaves out changes of pods that make no difference to where they may be.
func concerns(old, now *corev1.Pod) bool {
	if old == nil || now == nil {
		return now == nil || now.Spec.NodeName != ""
	}
	return old.Spec.NodeName != now.Spec.NodeName || old.UID != now.UID ||
		!equality.Semantic.DeepEqual(old.Spec.Tolerations, now.Spec.Tolerations)
}

// tainted leaves out changes of nodes that make no difference to who may be there.
func tainted(old, now *corev1.Node) bool {
	return now != nil && (old == nil && len(expelling(now)) > 0 || old != nil && !equality.Semantic.DeepEqual(expelling(old), expelling(now)))
}

// podsOn are the keys of the pods of a node.
func (r *reconciler) podsOn(ctx context.Context, node *corev1.Node) []client.Key {
	on, err := pods.OnNode(ctx, r.pods, node.Name)
	if err != nil {
		return nil // the controller ends
	}
	var out []client.Key
	for _, p := range on {
		out = append(out, client.KeyOf(p))
	}
	return out
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	pod, taints, err := r.observe(ctx, req.Key)
	if err != nil {
		return controller.Done, fmt.Errorf("observe %s: %w", req.Key, err)
	}
	if pod == nil {
		r.forget(req.Key)
		return controller.Done, nil
	}
	now := time.Now()
	since, known := r.began(pod, now)
	switch verdict, wait := decide(pod, taints, since, now); verdict {
	case leave:
		r.remember(pod, since)
		return controller.RequeueAfter(wait), nil
	case evict:
		if err := r.evict(ctx, pod); err != nil {
			return controller.Done, fmt.Errorf("evict %s: %w", req.Key, err)
		}
	case stay:
		if known {
			r.told.Event(pod, events.Normal, reason, "Cancelling deletion of Pod %s", req.Key)
		}
	}
	r.forget(req.Key)
	return controller.Done, nil
}

// observe returns a pod that is to be looked at, and the taints of its node.
func (r *reconciler) observe(ctx context.Context, key client.Key) (*corev1.Pod, []corev1.Taint, error) {
	pod, err := r.pods.Get(ctx, key)
	if err != nil || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	node, err := r.nodes.Get(ctx, client.Key{Name: pod.Spec.NodeName})
	if client.IsNotFound(err) {
		return pod, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return pod, expelling(node), nil
}

// evict says why a pod goes, and deletes it.
func (r *reconciler) evict(ctx context.Context, pod *corev1.Pod) error {
	key := client.KeyOf(pod)
	r.told.Event(pod, events.Normal, reason, "Marking for deletion Pod %s", key)
	_, err := r.pods.Status().Patch(ctx, key, client.StrategicPatch(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
			Reason: "DeletionByTaintManager", Message: "Taint manager: deleting due to NoExecute taint",
		}}},
	}))
	if err == nil {
		err = r.pods.Delete(ctx, key, client.IfUID(pod.UID))
	}
	if client.IsNotFound(err) || client.IsConflict(err) {
		return nil // it is gone, or another has its name
	}
	return err
}

// began is when the time of a pod began, and whether that was known before.
func (r *reconciler) began(pod *corev1.Pod, now time.Time) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.since[client.KeyOf(pod)]; ok && s.pod == pod.UID {
		return s.at, true
	}
	return now, false
}

func (r *reconciler) remember(pod *corev1.Pod, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since[client.KeyOf(pod)] = start{pod.UID, since}
}

func (r *reconciler) forget(key client.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.since, key)
}
