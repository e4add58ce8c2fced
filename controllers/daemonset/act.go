package daemonset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/pods"
	"github.com/even-keel/evenkeel/events"
)

// generationLabel tells which template a pod is made of, by the number of its changes.
const generationLabel = "pod-template-generation"

// errOutdated says that something was not as it was seen to be: the watch will tell,
// and nothing is to be done until then.
var errOutdated = errors.New("what was seen is out of date")

// act does what is planned; it returns what failed.
func (r *reconciler) act(ctx context.Context, s seen, do plan) error {
	return errors.Join(
		pods.Each(len(do.remove), func(i int) error { return r.remove(ctx, s, do.remove[i]) }),
		pods.Each(len(do.create), func(i int) error { return r.create(ctx, s, do.create[i]) }),
	)
}

func (r *reconciler) create(ctx context.Context, s seen, node string) error {
	pod, err := r.pods.Create(ctx, s.newPod(node))
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("create a pod of %s: its namespace ends: %w", client.KeyOf(s.set), errOutdated)
	case err != nil:
		r.told.Event(s.set, events.Warning, "FailedCreate", "Error creating: %s", pods.Message(err))
		return fmt.Errorf("create a pod of %s on %s: %w", client.KeyOf(s.set), node, err)
	}
	r.told.Event(s.set, events.Normal, "SuccessfulCreate", "Created pod: %s", pod.Name)
	return nil
}

func (r *reconciler) remove(ctx context.Context, s seen, p *corev1.Pod) error {
	switch p.Status.Phase {
	case corev1.PodFailed:
		r.failures.add(s.set, nodeOf(p), s.now)
		r.told.Event(s.set, events.Warning, "FailedDaemonPod", "Found failed daemon pod %s/%s on node %s, will try to kill it", p.Namespace, p.Name, nodeOf(p))
	case corev1.PodSucceeded:
		r.told.Event(s.set, events.Normal, "SucceededDaemonPod", "Found succeeded daemon pod %s/%s on node %s, will try to delete it", p.Namespace, p.Name, nodeOf(p))
	}
	err := r.pods.Delete(ctx, client.KeyOf(p), client.IfUID(p.UID))
	switch {
	case client.IsNotFound(err), client.IsConflict(err):
		return fmt.Errorf("delete pod %s: %w", client.KeyOf(p), errOutdated) // it is gone, or another has its name
	case err != nil:
		r.told.Event(s.set, events.Warning, "FailedDelete", "Error deleting: %s", pods.Message(err))
		return fmt.Errorf("delete pod %s: %w", client.KeyOf(p), err)
	}
	r.told.Event(s.set, events.Normal, "SuccessfulDelete", "Deleted pod: %s", p.Name)
	return nil
}

// newPod is a pod for a node. The scheduler binds it, for its affinity names the node.
func (s seen) newPod(node string) *corev1.Pod {
	p := pods.Of(&s.set.Spec.Template, s.set, kind)
	p.GenerateName = s.set.Name + "-"
	if len(p.GenerateName) > validation.DNS1123SubdomainMaxLength {
		p.GenerateName = s.set.Name
	}
	p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] = s.hash
	if n := s.set.Annotations[appsv1.DeprecatedTemplateGeneration]; n != "" {
		p.Labels[generationLabel] = n
	}
	p.Spec.Tolerations = tolerations(&p.Spec)
	p.Spec.Affinity = onlyOn(node, p.Spec.Affinity)
	return p
}
