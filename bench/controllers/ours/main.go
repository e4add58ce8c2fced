// Command ours is Evenkeel's side of the comparison of controllers.
package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/bench/controllers/foo"
	"github.com/even-keel/evenkeel/bench/controllers/side"
	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/manager"
)

func main() { side.Main(run) }

func run(ctx context.Context, j *side.Job) error {
	m, err := manager.New(manager.Options{Config: j.Config})
	if err != nil {
		return err
	}
	r := &reconciler{job: j, source: m, foos: client.Of[*foo.Foo](m), deployments: client.Of[*appsv1.Deployment](m)}
	m.Add(r.controller())
	return m.Run(ctx)
}

type reconciler struct {
	job         *side.Job
	source      client.Source
	foos        *client.Client[*foo.Foo]
	deployments *client.Client[*appsv1.Deployment]
}

func (r *reconciler) controller() *controller.Controller {
	workers := controller.Workers(r.job.Workers)
	foos, owns := controller.For[*foo.Foo](), controller.Owns[*appsv1.Deployment]()
	switch r.job.Task {
	case side.Latency:
		return controller.New("foo", r.look, foos, workers)
	case side.Memory:
		return controller.New("pod", r.nothing, controller.For[*corev1.Pod](), workers)
	case side.Foo:
		return controller.New("foo", r.ensure, foos, owns, workers)
	}
	notices := make(chan controller.Notice, 1024)
	keys := make([]client.Key, r.job.Objects)
	for i := range keys {
		keys[i] = client.Key{Namespace: side.Namespace, Name: side.NameOf(i)}
	}
	r.job.Enqueue = func(i int) { notices <- controller.Notice{Key: keys[i]} }
	return controller.New("foo", r.read, controller.For[*foo.Foo](controller.GenerationChanged()), owns,
		controller.Channel("bench", notices), workers)
}

// read reads a Foo and its Deployment, and writes the status if it is to.
func (r *reconciler) read(ctx context.Context, req controller.Request) (controller.Result, error) {
	f, err := r.foos.Get(ctx, req.Key)
	if err != nil {
		return controller.Done, err
	}
	d, err := r.deployments.Get(ctx, client.Key{Namespace: f.Namespace, Name: f.Spec.DeploymentName})
	if err != nil {
		return controller.Done, err
	}
	if pass := r.job.Pass(); r.job.Task == side.Write && pass > 1 {
		f = f.Clone()
		f.Status = f.StatusFrom(d)
		f.Status.Pass = pass
		if _, err := r.foos.UpdateStatus(ctx, f); err != nil {
			return controller.Done, err
		}
	}
	r.job.Done(req.Key.Name)
	return controller.Done, nil
}

func (r *reconciler) look(ctx context.Context, req controller.Request) (controller.Result, error) {
	f, err := r.foos.Get(ctx, req.Key)
	if err == nil {
		r.job.Saw(f)
	}
	return controller.Done, err
}

func (r *reconciler) nothing(context.Context, controller.Request) (controller.Result, error) {
	r.job.DoneAny()
	return controller.Done, nil
}

// ensure has the Deployment be what a Foo wants, and tells how it is.
func (r *reconciler) ensure(ctx context.Context, req controller.Request) (controller.Result, error) {
	f, err := r.foos.Get(ctx, req.Key)
	if err != nil {
		return controller.Done, client.IgnoreNotFound(err)
	}
	d, err := r.deployments.Get(ctx, client.Key{Namespace: f.Namespace, Name: f.Spec.DeploymentName})
	if client.IsNotFound(err) {
		d = f.Deployment()
		if err = controller.SetController(r.source, f, d); err == nil {
			d, err = r.deployments.Create(ctx, d)
		}
		if client.IsAlreadyExists(err) {
			return controller.Done, nil // it is about to be seen
		}
	}
	if err != nil {
		return controller.Done, err
	}
	status := f.StatusFrom(d)
	if status == f.Status {
		return controller.Done, nil
	}
	f = f.Clone()
	f.Status = status
	_, err = r.foos.UpdateStatus(ctx, f)
	return controller.Done, err
}
