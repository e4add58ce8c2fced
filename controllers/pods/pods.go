// Package pods is what controllers that make pods of a template have in common: when
// a pod counts as up, how a pod is made, how many are made at once, and which are on
// a node.
package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/informer"
)

// Ended reports whether all containers of a pod have come to their end, well or not.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Ready reports whether a pod is ready to serve.
func Ready(p *corev1.Pod) bool {
	_, ok := readySince(p)
	return ok
}

func readySince(p *corev1.Pod) (since time.Time, ok bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

// AvailableIn is how long it takes until a pod has been ready for a number of
// seconds, if it stays so: 0 if it has. It is false of pods that are not ready, or do
// not tell since when.
func AvailableIn(p *corev1.Pod, minReadySeconds int32, now time.Time) (time.Duration, bool) {
	since, ok := readySince(p)
	switch {
	case !ok, minReadySeconds > 0 && since.IsZero():
		return 0, false
	case minReadySeconds <= 0:
		return 0, true
	}
	return max(since.Add(time.Duration(minReadySeconds)*time.Second).Sub(now), 0), true
}

// Available reports whether a pod has been ready for a number of seconds.
func Available(p *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	in, ok := AvailableIn(p, minReadySeconds, now)
	return ok && in == 0
}

// nodeIndex has pods by the name of their node. Servers know it as a field.
const nodeIndex = "spec.nodeName"

// ByNode has [OnNode] find a source's pods in the cache.
func ByNode() controller.SourceOption {
	return controller.With(informer.Index(nodeIndex, func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} }))
}

// OnNode returns the pods of a node. They have to be watched with [ByNode].
func OnNode(ctx context.Context, all *client.Client[*corev1.Pod], node string) ([]*corev1.Pod, error) {
	var out []*corev1.Pod
	for p, err := range all.List(ctx, client.Field(nodeIndex, node)) {
		if err != nil {
			return nil, fmt.Errorf("list pods of node %s: %w", node, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// Of is a pod as a template has it, controlled by an owner of a kind. It has no name,
// and shares what is deep in its spec with the template.
func Of(t *corev1.PodTemplateSpec, owner client.Object, kind schema.GroupVersionKind) *corev1.Pod {
	labels := maps.Clone(t.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Labels: labels, Annotations: maps.Clone(t.Annotations), Finalizers: slices.Clone(t.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
		},
		Spec: t.Spec,
	}
}

// together is how many requests there are at once.
const together = 64

// Each calls f for 0 to n-1, in batches that double in size as long as none fails:
// what cannot be done at all is tried once, and not n times.
func Each(n int, f func(i int) error) error {
	for next, batch := 0, 1; next < n; batch *= 2 {
		batch = min(batch, n-next, together)
		var g errgroup.Group
		for i := next; i < next+batch; i++ {
			g.Go(func() error { return f(i) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		next += batch
	}
	return nil
}

// Message is what the server said, without what led to the request.
func Message(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
