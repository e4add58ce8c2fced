// Package cronjob makes Jobs at the times that CronJobs say.
//
// The name of a job tells its time, and an annotation of it too: from the jobs that
// exist, and the status, it follows which time is next. So none is started twice,
// wherever the controller crashes.
package cronjob

import (
	"context"
	"fmt"
	"sync"
	"time"
	_ "time/tzdata" // zones are known whatever the host has

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
)

// Name is the controller's.
const Name = "cronjob"

// workers is how many CronJobs are worked on at once.
const workers = 5

// rounds is how many steps a reconcile takes until others have their turn.
const rounds = 8

// New returns the controller; clients come from the source, events go to the
// recorder.
func New(s client.Source, told *events.Recorder) *controller.Controller {
	r := &reconciler{
		crons: client.Of[*batchv1.CronJob](s), jobs: client.Of[*batchv1.Job](s), told: told,
		schedules: map[client.Key]schedule{},
	}
	return controller.New(Name, r.reconcile,
		controller.For[*batchv1.CronJob](),
		controller.Owns[*batchv1.Job](controller.ByController[*batchv1.Job]()),
		controller.Workers(workers),
		controller.IgnoreOwnWrites())
}

type reconciler struct {
	crons *client.Client[*batchv1.CronJob]
	jobs  *client.Client[*batchv1.Job]
	told  *events.Recorder

	mu        sync.Mutex
	schedules map[client.Key]schedule
}

// schedule is one that this process has seen of a CronJob.
type schedule struct {
	of         types.UID
	text, zone string
	// since is when it changed to that: times before were those of another schedule.
	since time.Time
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	var b behind
	for range rounds {
		cron, err := r.crons.Get(ctx, req.Key)
		if client.IsNotFound(err) {
			r.forget(req.Key)
			return controller.Done, nil
		}
		if err != nil {
			return controller.Done, fmt.Errorf("observe %s: %w", req.Key, err)
		}
		s, err := r.observe(ctx, cron)
		if err != nil {
			return controller.Done, fmt.Errorf("observe %s: %w", req.Key, err)
		}
		s.behind = b
		do := decide(s)
		if err := r.act(ctx, cron, do, &b); err != nil {
			return controller.Done, fmt.Errorf("jobs of %s: %w", req.Key, err)
		}
		if do.nothing() {
			return after(do.again), nil
		}
	}
	return controller.RequeueAfter(0), nil
}

func after(d time.Duration) controller.Result {
	if d > 0 {
		return controller.RequeueAfter(d)
	}
	return controller.Done
}

// observe returns what there is. Jobs that the status lists and the cache has not are
// asked for: another process may have made them.
func (r *reconciler) observe(ctx context.Context, cron *batchv1.CronJob) (seen, error) {
	jobs, err := controller.Controlled(ctx, r.jobs, cron.Namespace, cron.UID)
	if err != nil {
		return seen{}, err
	}
	known := map[types.UID]bool{}
	for _, j := range jobs {
		known[j.UID] = true
	}
	for _, ref := range cron.Status.Active {
		if known[ref.UID] {
			continue
		}
		j, err := r.jobs.Live().Get(ctx, client.Key{Namespace: cron.Namespace, Name: ref.Name})
		if err == nil && j.UID == ref.UID {
			jobs = append(jobs, j)
		}
		if client.IgnoreNotFound(err) != nil {
			return seen{}, err
		}
	}
	return seen{cron: cron, jobs: jobs, since: r.since(cron), now: time.Now()}, nil
}

// since is when a CronJob got the schedule that it has, if this process saw that.
func (r *reconciler) since(cron *batchv1.CronJob) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.KeyOf(cron)
	now := schedule{of: cron.UID, text: cron.Spec.Schedule, zone: zoneOf(cron)}
	was, ok := r.schedules[key]
	switch {
	case !ok || was.of != now.of:
	case was.text == now.text && was.zone == now.zone:
		now.since = was.since
	default:
		now.since = time.Now()
	}
	r.schedules[key] = now
	return now.since
}

func (r *reconciler) forget(key client.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.schedules, key)
}
