// Package podstest plays the scheduler and the kubelets in the tests of controllers
// that make pods: pods get a node, run, get ready, and end when they are deleted.
package podstest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// Node is where pods run that do not say where.
const Node = "n1"

// Cluster plays for the pods of a server. Make one with [Play].
type Cluster struct {
	t       testing.TB
	pods    *client.Client[*corev1.Pod]
	notices chan controller.Notice

	mu   sync.Mutex
	held map[client.Key]bool // are not to get ready, nor to end
	// all says that none is to.
	all     bool
	waiting map[client.Key]bool // what was held back since
}

// Play plays until the test ends.
func Play(t testing.TB, env *evenkeeltest.Env) *Cluster {
	c := &Cluster{t: t, pods: client.Of[*corev1.Pod](env.Conn()), notices: make(chan controller.Notice, 100), held: map[client.Key]bool{}, waiting: map[client.Key]bool{}}
	env.Run(c.run)
	return c
}

func (c *Cluster) run(ctx context.Context, cfg *rest.Config) error {
	base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	k := &kubelet{cluster: c, pods: client.Of[*corev1.Pod](base)}
	k.bindings = client.Sub[*corev1.Binding](k.pods, "binding")
	err = base.Add(controller.New("kubelet", k.reconcile, controller.For[*corev1.Pod](), controller.Channel("test", c.notices), controller.Workers(4)))
	if err != nil {
		return err
	}
	return base.Run(ctx)
}

// Hold has pods stay as they are, whether or not they exist yet: they do not get
// ready, and do not end.
func (c *Cluster) Hold(keys ...client.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		c.held[key] = true
	}
}

// Release ends [Cluster.Hold].
func (c *Cluster) Release(keys ...client.Key) {
	c.mu.Lock()
	for _, key := range keys {
		delete(c.held, key)
	}
	c.mu.Unlock()
	for _, key := range keys {
		c.notices <- controller.Notice{Key: key, Note: "released"}
	}
}

// HoldAll is [Cluster.Hold] for all pods.
func (c *Cluster) HoldAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = true
}

// ReleaseAll ends [Cluster.HoldAll].
func (c *Cluster) ReleaseAll() {
	c.mu.Lock()
	waiting := slices.Collect(maps.Keys(c.waiting))
	c.all = false
	clear(c.waiting)
	c.mu.Unlock()
	c.Release(waiting...)
}

func (c *Cluster) holds(key client.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all {
		c.waiting[key] = true
	}
	return c.all || c.held[key]
}

// End has a pod come to an end, in a phase.
func (c *Cluster) End(key client.Key, phase corev1.PodPhase) {
	c.t.Helper()
	_, err := c.pods.Status().Patch(c.t.Context(), key, client.MergePatch(map[string]any{
		"status": map[string]any{"phase": phase, "conditions": []any{}},
	}))
	if err != nil {
		c.t.Fatalf("end pod %s: %v", key, err)
	}
}

// kubelet does what there is to do about a pod.
type kubelet struct {
	cluster  *Cluster
	pods     *client.Client[*corev1.Pod]
	bindings *client.Subresource[*corev1.Binding]
}

func (k *kubelet) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	pod, err := k.pods.Get(ctx, req.Key)
	switch {
	case err != nil:
		err = client.IgnoreNotFound(err)
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil:
		err = k.bind(ctx, pod)
	case k.cluster.holds(req.Key):
	case pod.DeletionTimestamp != nil:
		err = client.IgnoreNotFound(k.pods.Delete(ctx, req.Key, client.Grace(0), client.IfUID(pod.UID)))
	case pod.Status.Phase == corev1.PodPending:
		err = k.start(ctx, pod)
	}
	if client.IsConflict(err) {
		return controller.Requeue, nil
	}
	return controller.Done, err
}

func (k *kubelet) bind(ctx context.Context, pod *corev1.Pod) error {
	_, err := k.bindings.Create(ctx, client.KeyOf(pod), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: wants(pod)},
	})
	return client.IgnoreNotFound(err)
}

// wants is the node that a pod's affinity names, [Node] otherwise.
func wants(pod *corev1.Pod) string {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return Node
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range term.MatchFields {
			if f.Key == metav1.ObjectNameField {
				return f.Values[0]
			}
		}
	}
	return Node
}

func (k *kubelet) start(ctx context.Context, pod *corev1.Pod) error {
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	if _, err := k.pods.UpdateStatus(ctx, pod); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("start %s: %w", client.KeyOf(pod), err))
	}
	return nil
}
