// Package podgc deletes pods that nobody else will: those of nodes that are gone, those
// that were to end before they got a node, those that end on a node which is out of
// service, and the oldest that have ended if there are too many.
//
// It looks at all pods from time to time. A node counts as gone once it has not been
// there for a while, and the server says so too.
package podgc

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/pods"
	"github.com/even-keel/evenkeel/events"
)

// Name is the controller's.
const Name = "podgc"

// period is how often all pods are looked at.
const period = 20 * time.Second

// threshold is how many pods that have ended may be there.
const threshold = 12500

// New returns the controller; clients come from the source. It tells of no events.
func New(s client.Source, _ *events.Recorder) *controller.Controller { return newWith(s, threshold) }

func newWith(s client.Source, threshold int) *controller.Controller {
	c := &collector{pods: client.Of[*corev1.Pod](s), nodes: client.Of[*corev1.Node](s), threshold: threshold}
	return controller.New(Name, c.reconcile,
		controller.Reads[*corev1.Pod](),
		controller.Reads[*corev1.Node](),
		controller.Feed("clock", tick))
}

// tick asks for a look at all pods now, and then every period.
func tick(ctx context.Context, tell func(controller.Notice)) {
	every := time.NewTicker(period)
	defer every.Stop()
	for {
		tell(controller.Notice{Key: client.Key{Name: "pods"}, Note: "it is time"})
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

type collector struct {
	pods      *client.Client[*corev1.Pod]
	nodes     *client.Client[*corev1.Node]
	threshold int
	// missing is the worker's own: there is one key, which is with one worker at a time.
	missing map[string]time.Time
}

func (c *collector) reconcile(ctx context.Context, _ controller.Request) (controller.Result, error) {
	s, err := c.observe(ctx)
	if err != nil {
		return controller.Done, fmt.Errorf("observe the pods: %w", err)
	}
	do := decide(s)
	c.missing = do.missing
	return controller.Done, pods.Each(len(do.remove), func(i int) error { return c.remove(ctx, do.remove[i]) })
}

// observe returns what there is. Of nodes that have been missing for long enough the
// server is asked.
func (c *collector) observe(ctx context.Context) (seen, error) {
	s := seen{nodes: map[string]*corev1.Node{}, missing: c.missing, threshold: c.threshold, now: time.Now()}
	for p, err := range c.pods.List(ctx) {
		if err != nil {
			return s, err
		}
		s.pods = append(s.pods, p)
	}
	for n, err := range c.nodes.List(ctx) {
		if err != nil {
			return s, err
		}
		s.nodes[n.Name] = n
	}
	for name, since := range s.missing {
		if s.nodes[name] != nil || s.now.Sub(since) < quarantine {
			continue
		}
		n, err := c.nodes.Live().Get(ctx, client.Key{Name: name})
		if client.IgnoreNotFound(err) != nil {
			return s, err
		}
		if err == nil {
			s.nodes[name] = n
		}
	}
	return s, nil
}

// remove says of a pod that has not ended that it has failed, and deletes it at once.
func (c *collector) remove(ctx context.Context, r removal) error {
	key := client.KeyOf(r.pod)
	var err error
	if !pods.Ended(r.pod) {
		_, err = c.pods.Status().Patch(ctx, key, client.StrategicPatch(map[string]any{
			"metadata": map[string]any{"uid": r.pod.UID}, "status": r.status(metav1.Now()),
		}))
	}
	if err == nil {
		err = c.pods.Delete(ctx, key, client.IfUID(r.pod.UID), client.Grace(0))
	}
	if err == nil || client.IsNotFound(err) || client.IsConflict(err) {
		return nil // it is gone, or another has its name
	}
	return fmt.Errorf("delete pod %s: %w", key, err)
}

// status is what is to be said of a pod before it goes.
func (r removal) status(now metav1.Time) map[string]any {
	out := map[string]any{"phase": corev1.PodFailed}
	if r.orphaned {
		out["conditions"] = []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: now,
			Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists",
		}}
	}
	return out
}
