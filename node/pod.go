package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
)

const (
	// fieldManager is who writes, as managed fields tell it.
	fieldManager = "kubelet"
	// rounds is how often a pod is decided on in one reconcile.
	rounds = 16
	// retryAfter is how long something waits that could not be started.
	retryAfter = 10 * time.Second
)

// reconcile brings a pod on its node in line with what the server says.
func (a *Agent) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	pod, err := a.pods.Get(ctx, req.Key)
	if err != nil && !client.IsNotFound(err) {
		return controller.Done, err
	}
	exists := err == nil
	r := a.record(req.Key)
	if r != nil && (!exists || r.id.UID != pod.UID) {
		if ended, result, err := a.clear(ctx, r.id); !ended {
			return result, err
		}
		r = nil
	}
	if !exists || !a.nodes.has(pod.Spec.NodeName) {
		return controller.Done, nil
	}
	if r == nil {
		r = a.remember(idOf(pod))
	}
	return a.bring(ctx, pod, r)
}

// clear ends a pod that the server has forgotten.
func (a *Agent) clear(ctx context.Context, id PodID) (ended bool, _ controller.Result, _ error) {
	seen, _ := a.runtime.Observe(id)
	left := false
	for _, c := range seen.Containers {
		if !c.runs() {
			continue
		}
		left = true
		if c.StopBy.IsZero() || time.Until(c.StopBy) > time.Second {
			a.runtime.Stop(id, c.Name, Stop{Grace: time.Second})
		}
	}
	if left {
		seen, _ = a.runtime.Observe(id)
		return false, at(seen.Next), nil
	}
	return true, controller.Done, a.drop(ctx, id)
}

// drop forgets a pod of which nothing runs.
func (a *Agent) drop(ctx context.Context, id PodID) error {
	a.prober.forget(id)
	if err := a.runtime.Remove(ctx, id); err != nil {
		return fmt.Errorf("remove %s: %w", id.Key, err)
	}
	a.forget(id.Key)
	return nil
}

// at is when a key comes again by itself; zero is never.
func at(t time.Time) controller.Result {
	if t.IsZero() {
		return controller.Done
	}
	return controller.RequeueAfter(time.Until(t))
}

// bring decides and acts until there is nothing to do now, and tells the server.
func (a *Agent) bring(ctx context.Context, pod *corev1.Pod, r *record) (controller.Result, error) {
	var p plan
	for range rounds {
		p = decide(a.look(pod, r))
		a.prober.want(r.id, p.probes)
		acted, err := a.act(ctx, pod, r, p)
		if err != nil {
			return controller.Done, err
		}
		if !acted {
			return a.conclude(ctx, pod, r, p)
		}
	}
	_, err := a.conclude(ctx, pod, r, p)
	return controller.Requeue, err
}

// look puts together what a decision needs.
func (a *Agent) look(pod *corev1.Pod, r *record) view {
	v := view{now: time.Now(), pod: pod, runtime: a.runtime.Name(), options: &a.options, hostIPs: a.nodes.hostIPs(pod.Spec.NodeName)}
	v.seen, v.known = a.runtime.Observe(r.id)
	v.memory = memory{prepared: r.prepared, trouble: r.trouble, backoff: r.backoff, refresh: r.refresh, health: a.prober.health(r.id, v.seen.Containers)}
	return v
}

// conclude tells the server what a plan says of the pod.
func (a *Agent) conclude(ctx context.Context, pod *corev1.Pod, r *record, p plan) (controller.Result, error) {
	for _, n := range p.notes {
		a.event(r.id, n.slot.role.path(), n.slot.spec.Name, n.warning, n.reason, n.text)
	}
	if !equality.Semantic.DeepEqual(pod.Status, p.status) {
		next := *pod
		next.Status = p.status
		if _, err := a.pods.UpdateStatus(ctx, &next, client.FieldManager(fieldManager)); client.IgnoreNotFound(err) != nil {
			return controller.Done, fmt.Errorf("tell the status: %w", err)
		}
	}
	if !p.gone {
		return at(p.next), nil
	}
	if err := a.drop(ctx, r.id); err != nil {
		return controller.Done, err
	}
	err := a.pods.Delete(ctx, r.id.Key, client.Grace(0), client.IfUID(r.id.UID))
	if client.IsNotFound(err) || client.IsConflict(err) {
		return controller.Done, nil // it is gone, or another has its name
	}
	return controller.Done, err
}

// act does what a plan says, and reports whether that was anything.
func (a *Agent) act(ctx context.Context, pod *corev1.Pod, r *record, p plan) (bool, error) {
	if p.prepare {
		if err := a.prepare(ctx, pod, r); err != nil {
			return false, err
		}
	}
	for _, s := range p.stops {
		a.event(r.id, s.slot.role.path(), s.slot.spec.Name, false, "Killing", s.why)
		a.runtime.Stop(r.id, s.slot.spec.Name, Stop{Grace: s.grace})
	}
	for _, s := range p.starts {
		if err := a.start(ctx, pod, r, s); err != nil {
			return false, err
		}
	}
	return p.prepare || len(p.stops) > 0 || len(p.starts) > 0, nil
}

// prepare has the runtime make what the pod needs. What only time heals is
// remembered; an error is one of the server.
func (a *Agent) prepare(ctx context.Context, pod *corev1.Pod, r *record) error {
	volumes, err := a.volumes(ctx, pod, r)
	var failure *Failure
	if err != nil && !errors.As(err, &failure) {
		return err
	}
	if err == nil {
		if err = a.runtime.Prepare(ctx, Pod{ID: r.id, Object: pod, Volumes: volumes}); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	r.refresh = time.Time{}
	if a.runtime.Files() && a.options.Refresh > 0 && changes(pod) {
		r.refresh = time.Now().Add(a.options.Refresh)
	}
	if err == nil {
		r.prepared = &pod.Annotations
		delete(r.trouble, "")
		return nil
	}
	reason, text := "FailedCreatePodSandBox", "Failed to create pod sandbox: "+err.Error()
	if failure != nil || errors.As(err, &failure) {
		reason, text = failure.Reason, failure.Message
	}
	a.event(r.id, "", "", true, reason, text)
	r.fail("", &Failure{reason, text}, retryAfter)
	return nil
}

// start starts a container, and remembers why if that is not possible.
func (a *Agent) start(ctx context.Context, pod *corev1.Pod, r *record, s starting) error {
	spec, path := s.slot.spec, s.slot.role.path()
	c, err := a.container(ctx, pod, s)
	if err == nil {
		a.event(r.id, path, spec.Name, false, "Pulled", fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", spec.Image))
		err = a.runtime.Start(ctx, r.id, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if f := new(Failure); err != nil && !errors.As(err, &f) {
			err = &Failure{ReasonRun, err.Error()}
		}
	}
	failure := new(Failure)
	switch {
	case err == nil:
		a.event(r.id, path, spec.Name, false, "Created", "Container created")
		a.event(r.id, path, spec.Name, false, "Started", "Container started")
		delete(r.trouble, spec.Name)
		if s.backoff.delay > 0 {
			setIn(&r.backoff, spec.Name, s.backoff)
		}
		return nil
	case !errors.As(err, &failure):
		return err
	}
	a.event(r.id, path, spec.Name, true, "Failed", "Error: "+failure.Message)
	r.fail(spec.Name, failure, a.patience(r.trouble[spec.Name].tries, failure))
	return nil
}

// patience is how long a container waits that did not start: longer each time, if it
// is for its image.
func (a *Agent) patience(tries int, f *Failure) time.Duration {
	if f.Reason != ReasonPull {
		return retryAfter
	}
	return min(a.options.Backoff<<min(tries, 10), a.options.MaxBackoff)
}

// fail remembers why something did not start.
func (r *record) fail(name string, f *Failure, wait time.Duration) {
	t := trouble{Failure: *f, tries: r.trouble[name].tries + 1, retry: time.Now().Add(wait)}
	if t.Reason == ReasonPull && t.tries > 1 {
		t.Failure = Failure{reasonPullBackOff, fmt.Sprintf("Back-off pulling image: %s: %s", f.Reason, f.Message)}
	}
	setIn(&r.trouble, name, t)
}

// setIn sets a key of a map that is made when it is needed.
func setIn[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}
