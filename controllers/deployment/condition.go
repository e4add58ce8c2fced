package deployment

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of conditions.
const (
	newSetCreated   = "NewReplicaSetCreated"
	newSetFound     = "FoundNewReplicaSet"
	newSetAvailable = "NewReplicaSetAvailable"
	setUpdated      = "ReplicaSetUpdated"
	setCreateError  = "ReplicaSetCreateError"
	timedOut        = "ProgressDeadlineExceeded"
	paused          = "DeploymentPaused"
	resumed         = "DeploymentResumed"
	enough          = "MinimumReplicasAvailable"
	notEnough       = "MinimumReplicasUnavailable"
)

// conditions are those of a status that has all else.
func (s seen) conditions(now appsv1.DeploymentStatus, did outcome) []appsv1.DeploymentCondition {
	b := &board{list: slices.Clone(s.deployment.Status.Conditions), now: s.now}
	s.available(b, now)
	if s.deployment.DeletionTimestamp != nil {
		return b.list
	}
	if _, ok := deadline(s.deployment); ok {
		s.pausing(b)
		s.appearance(b, did)
	}
	if s.deployment.Spec.Paused {
		return b.list
	}
	s.progress(b, now)
	s.failures(b)
	return b.list
}

// available tells whether there are as many pods as there have to be.
func (s seen) available(b *board, now appsv1.DeploymentStatus) {
	least := replicasOf(s.deployment.Spec.Replicas) - boundsOf(s.deployment).unavailable
	if now.AvailableReplicas >= least {
		b.set(appsv1.DeploymentAvailable, corev1.ConditionTrue, enough, "Deployment has minimum availability.")
	} else {
		b.set(appsv1.DeploymentAvailable, corev1.ConditionFalse, notEnough, "Deployment does not have minimum availability.")
	}
}

// pausing tells that a Deployment was paused, or resumed, so that the time in
// between does not count. One that is late stays so.
func (s seen) pausing(b *board) {
	var reason string
	if c := b.get(appsv1.DeploymentProgressing); c != nil {
		reason = c.Reason
	}
	switch {
	case reason == timedOut:
	case s.deployment.Spec.Paused:
		b.set(appsv1.DeploymentProgressing, corev1.ConditionUnknown, paused, "Deployment is paused")
	case reason == paused:
		b.set(appsv1.DeploymentProgressing, corev1.ConditionUnknown, resumed, "Deployment is resumed")
	}
}

// appearance tells where the ReplicaSet of the template came from.
func (s seen) appearance(b *board, did outcome) {
	switch p := s.split().new; {
	case did.created != "":
		b.set(appsv1.DeploymentProgressing, corev1.ConditionTrue, newSetCreated, fmt.Sprintf("Created new replica set %q", did.created))
	case did.refused != "":
		b.set(appsv1.DeploymentProgressing, corev1.ConditionFalse, setCreateError, did.refused)
	case p != nil && b.get(appsv1.DeploymentProgressing) == nil:
		b.set(appsv1.DeploymentProgressing, corev1.ConditionTrue, newSetFound, fmt.Sprintf("Found new replica set %q", p.set.Name))
	}
}

// progress tells whether a roll comes further, has come to its end, or is late. A
// Deployment that was complete stays so until it is rolled again.
func (s seen) progress(b *board, now appsv1.DeploymentStatus) {
	c := b.get(appsv1.DeploymentProgressing)
	if _, ok := deadline(s.deployment); !ok {
		b.remove(appsv1.DeploymentProgressing)
		return
	}
	if c != nil && c.Reason == newSetAvailable && now.Replicas == now.UpdatedReplicas {
		return
	}
	subject := fmt.Sprintf("Deployment %q", s.deployment.Name)
	if p := s.split().new; p != nil {
		subject = fmt.Sprintf("ReplicaSet %q", p.set.Name)
	}
	switch {
	case s.complete(now):
		b.set(appsv1.DeploymentProgressing, corev1.ConditionTrue, newSetAvailable, subject+" has successfully progressed.")
	case s.advanced(now):
		b.renew(appsv1.DeploymentProgressing, corev1.ConditionTrue, setUpdated, subject+" is progressing.")
	case late(s.deployment, c, s.now):
		b.set(appsv1.DeploymentProgressing, corev1.ConditionFalse, timedOut, subject+" has timed out progressing.")
	}
}

// failures tells why a ReplicaSet has not the pods that it should have, the new one
// first.
func (s seen) failures(b *board) {
	all := s.split().all()
	slices.Reverse(all)
	for _, p := range all {
		for _, c := range p.set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				b.set(appsv1.DeploymentReplicaFailure, c.Status, c.Reason, c.Message)
				return
			}
		}
	}
	b.remove(appsv1.DeploymentReplicaFailure)
}

// board is the conditions of a status.
type board struct {
	list []appsv1.DeploymentCondition
	now  time.Time
}

func conditionOf(list []appsv1.DeploymentCondition, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	i := slices.IndexFunc(list, func(c appsv1.DeploymentCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func (b *board) get(t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	return conditionOf(b.list, t)
}

func (b *board) remove(t appsv1.DeploymentConditionType) {
	b.list = slices.DeleteFunc(b.list, func(c appsv1.DeploymentCondition) bool { return c.Type == t })
}

// set sets a condition, unless its status and reason are what they were.
func (b *board) set(t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) {
	if c := b.get(t); c == nil || c.Status != status || c.Reason != reason {
		b.renew(t, status, reason, message)
	}
}

// renew sets a condition and its time, which is that of the transition as well if
// the status is another than it was.
func (b *board) renew(t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) {
	at := metav1.NewTime(b.now).Rfc3339Copy()
	made := appsv1.DeploymentCondition{
		Type: t, Status: status, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at,
	}
	if c := b.get(t); c != nil && c.Status == status {
		made.LastTransitionTime = c.LastTransitionTime
	}
	b.remove(t)
	b.list = append(b.list, made)
}
