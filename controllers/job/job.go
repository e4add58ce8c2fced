// Package job runs pods until as many have succeeded as Jobs say.
//
// A finished pod is counted once, whatever fails in between: pods have a finalizer
// that keeps them until their job knows of them. First the UID of a finished pod is
// written into the job's status, then the finalizer is taken off, and then the UID
// becomes a number. A reconcile goes these steps one after the other, and looks again
// after each: decide says what the next one is, from nothing but what there is.
package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
)

// The names of the controllers.
const (
	Name        = "job"
	OrphansName = "job-orphans"
)

// workers is how many jobs are worked on at once.
const workers = 5

// rounds is how many steps a reconcile takes until other jobs have their turn.
const rounds = 12

// New returns the controllers: the one of jobs, and one that lets go of pods whose
// job is gone. Clients come from the source, events go to the recorder.
func New(s client.Source, told *events.Recorder) []*controller.Controller {
	r := &reconciler{
		jobs: client.Of[*batchv1.Job](s), pods: client.Of[*corev1.Pod](s), told: told,
		memory: newMemory(),
	}
	return []*controller.Controller{
		controller.New(Name, r.reconcile,
			controller.For[*batchv1.Job](),
			controller.Claims[*corev1.Pod](selectorOf),
			controller.Workers(workers),
			controller.IgnoreOwnWrites()),
		controller.New(OrphansName, r.letGo,
			controller.For[*corev1.Pod](controller.Where(mayBeOrphan)),
			controller.Reads[*batchv1.Job](),
			controller.Workers(workers)),
	}
}

func selectorOf(job *batchv1.Job) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(job.Spec.Selector)
}

type reconciler struct {
	jobs   *client.Client[*batchv1.Job]
	pods   *client.Client[*corev1.Pod]
	told   *events.Recorder
	memory *memory
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	var failed error
	for range rounds {
		job, err := r.jobs.Get(ctx, req.Key)
		if client.IsNotFound(err) || err == nil && (finished(job) || others(job)) {
			r.memory.forget(req.Key)
			return controller.Done, nil
		}
		if err != nil {
			return controller.Done, fmt.Errorf("observe %s: %w", req.Key, err)
		}
		s, err := r.observe(ctx, job)
		if err != nil {
			return controller.Done, fmt.Errorf("observe %s: %w", req.Key, err)
		}
		s.still = failed != nil
		do := decide(s)
		if do.nothing() {
			return after(do.again), failed
		}
		switch err := r.act(ctx, job, do); {
		case err != nil && (s.still || !do.touchesPods()):
			return controller.Done, errors.Join(failed, err)
		case err != nil:
			failed = err // what there is still has to be counted
		}
	}
	return controller.RequeueAfter(0), failed
}

func after(d time.Duration) controller.Result {
	if d > 0 {
		return controller.RequeueAfter(d)
	}
	return controller.Done
}

// others reports whether another controller works on a job.
func others(job *batchv1.Job) bool {
	by := job.Spec.ManagedBy
	return by != nil && *by != batchv1.JobControllerName
}

// countable leaves orphans alone that are over, and were counted when they were not
// orphans.
func countable(p *corev1.Pod) bool {
	return metav1.GetControllerOfNoCopy(p) != nil || !over(p) || tracked(p)
}

// observe claims the pods of a job, and returns what there is.
func (r *reconciler) observe(ctx context.Context, job *batchv1.Job) (seen, error) {
	selector, err := selectorOf(job)
	if err != nil {
		return seen{}, controller.Terminal(fmt.Errorf("selector: %w", err))
	}
	pods, err := controller.Claim(ctx, r.jobs, job, r.pods, selector, countable)
	if err != nil {
		return seen{}, err
	}
	known, ok := r.memory.of(job)
	if !ok {
		if known, err = r.begin(ctx, job, selector, pods); err != nil {
			return seen{}, err
		}
	}
	pods = known.trust(pods)
	known.fails = known.fails.after(job, pods)
	r.memory.keep(job, known)
	return seen{job: job, pods: pods, fails: known.fails, now: time.Now()}, nil
}
