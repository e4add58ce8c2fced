package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/events"
)

// schedule decides on a pod, and has done what follows from it.
func (l *loop) schedule(ctx context.Context, e *entry) {
	d, pod := l.snapshot.decide(e.podInfo), e.pod // which may be another later
	if d.Node != "" {
		l.assume(e, d.Node)
		l.act(func() func() {
			err := l.bindTo(ctx, pod, d.Node)
			return func() { l.bound(e, err) }
		})
		return
	}
	rejected := d.rejected
	if d.Nodes == 0 {
		rejected = all
	}
	l.queue.fail(e, rejected, time.Now())
	nominated := pod.Status.NominatedNodeName
	if d.note != waitsForEnd {
		nominated = d.Nominated
	}
	l.snapshot.Nominate(pod, nominated)
	l.act(func() func() {
		err := l.report(ctx, pod, d, nominated)
		return func() { l.reported(e, err) }
	})
}

// assume takes a pod to be on a node from now on.
func (l *loop) assume(e *entry, node string) {
	if len(l.snapshot.nominated) > 0 {
		l.snapshot.denominate(e.pod.UID)
	}
	l.snapshot.place(e.podInfo, node)
	l.assumed[e.pod.UID] = true
}

func (l *loop) bindTo(ctx context.Context, pod *corev1.Pod, node string) error {
	key := client.KeyOf(pod)
	_, err := l.bind.Create(ctx, key, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	})
	if err != nil {
		return fmt.Errorf("bind %s to %s: %w", key, node, err)
	}
	l.told.Record(events.Event{Regarding: pod, Reason: "Scheduled", Action: "Binding",
		Note: fmt.Sprintf("Successfully assigned %s to %s", key, node)})
	return nil
}

// bound is what follows from an attempt to bind a pod. One that failed is forgotten:
// if the server did it all the same, the watch tells.
func (l *loop) bound(e *entry, err error) {
	if err == nil {
		l.queue.remove(e.pod.UID)
		return
	}
	now := time.Now()
	if l.assumed[e.pod.UID] {
		delete(l.assumed, e.pod.UID)
		l.snapshot.RemovePod(e.pod.UID)
		l.queue.wake(podWent, now)
	}
	if client.IsNotFound(err) {
		return // the watch tells too, if it has not
	}
	l.logFailure("cannot bind; trying again", err)
	l.queue.fail(e, 0, now)
	l.queue.pause(e, now)
}

// logFailure logs what is not the end of the program, or somebody being faster.
func (l *loop) logFailure(what string, err error) {
	if !errors.Is(err, context.Canceled) && !client.IsConflict(err) {
		l.log.Warn(what, "error", err)
	}
}

// report tells why a pod has no node, after those have been deleted who have to go
// for it.
func (l *loop) report(ctx context.Context, pod *corev1.Pod, d Decision, nominated string) error {
	message := d.Message()
	l.told.Record(events.Event{Regarding: pod, Type: events.Warning, Reason: "FailedScheduling", Action: "Scheduling", Note: message})
	if err := l.patchStatus(ctx, pod, unscheduled(pod, message), nominated); err != nil {
		return fmt.Errorf("tell why %s has no node: %w", client.KeyOf(pod), err)
	}
	for _, victim := range d.Victims {
		if err := l.evict(ctx, pod, victim, d.Nominated); err != nil {
			return fmt.Errorf("delete %s for %s: %w", client.KeyOf(victim), client.KeyOf(pod), err)
		}
	}
	return nil
}

// reported is what follows: the pod waits for something that could help it. If it
// could not be told, or not all could be deleted, it is tried again soon.
func (l *loop) reported(e *entry, err error) {
	if err == nil || client.IsNotFound(err) {
		l.queue.wait(e, time.Now())
		return
	}
	l.logFailure("cannot tell why a pod has no node, or make room; trying again", err)
	l.queue.pause(e, time.Now())
}

// evict deletes a pod for a more important one.
func (l *loop) evict(ctx context.Context, pod, victim *corev1.Pod, node string) error {
	if victim.DeletionTimestamp != nil {
		return nil
	}
	why := condition(victim, corev1.DisruptionTarget, corev1.ConditionTrue, corev1.PodReasonPreemptionByScheduler,
		l.opts.Name+": preempting to accommodate a higher priority pod")
	err := l.patchStatus(ctx, victim, why, victim.Status.NominatedNodeName)
	if err == nil {
		err = l.writes.Delete(ctx, client.KeyOf(victim), client.IfUID(victim.UID))
	}
	if client.IsNotFound(err) || client.IsConflict(err) {
		return nil // it is gone, or another has its name
	}
	if err != nil {
		return err
	}
	l.told.Record(events.Event{Regarding: victim, Related: pod, Reason: "Preempted", Action: "Preempting",
		Note: fmt.Sprintf("Preempted by pod %s on node %s", pod.UID, node)})
	return nil
}

func unscheduled(pod *corev1.Pod, message string) corev1.PodCondition {
	return condition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, message)
}

// condition returns one for a pod, which began when the pod's own did if it has the
// same status.
func condition(pod *corev1.Pod, of corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) corev1.PodCondition {
	out := corev1.PodCondition{
		Type: of, Status: status, Reason: reason, Message: message,
		ObservedGeneration: pod.Generation, LastTransitionTime: metav1.Now(),
	}
	if old := conditionOf(pod, of); old != nil && old.Status == status {
		out.LastTransitionTime = old.LastTransitionTime
	}
	return out
}

func conditionOf(pod *corev1.Pod, of corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == of {
			return c
		}
	}
	return nil
}

// patchStatus writes a condition and the nominated node, if that changes anything.
func (l *loop) patchStatus(ctx context.Context, pod *corev1.Pod, c corev1.PodCondition, nominated string) error {
	old := conditionOf(pod, c.Type)
	same := old != nil && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message
	if same && pod.Status.NominatedNodeName == nominated {
		return nil
	}
	status := map[string]any{"conditions": []corev1.PodCondition{c}}
	if pod.Status.NominatedNodeName != nominated {
		status["nominatedNodeName"] = nominated
	}
	_, err := l.writes.Status().Patch(ctx, client.KeyOf(pod), client.StrategicPatch(map[string]any{
		"metadata": map[string]any{"uid": pod.UID}, "status": status,
	}))
	return err
}
