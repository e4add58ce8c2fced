// Command peer is controller-runtime's side of the comparison of controllers.
package main

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/even-keel/evenkeel/bench/controllers/foo"
	"github.com/even-keel/evenkeel/bench/controllers/side"
)

func main() { side.Main(run) }

func run(ctx context.Context, j *side.Job) error {
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := foo.AddToScheme(scheme); err != nil {
		return err
	}
	m, err := ctrl.NewManager(j.Config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	r := &reconciler{Client: m.GetClient(), job: j, scheme: scheme}
	if err := r.setUp(m); err != nil {
		return err
	}
	return m.Start(ctx)
}

type reconciler struct {
	client.Client
	job    *side.Job
	scheme *runtime.Scheme
}

func (r *reconciler) setUp(m ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(m).WithOptions(controller.Options{MaxConcurrentReconciles: r.job.Workers})
	switch r.job.Task {
	case side.Latency:
		return b.For(&foo.Foo{}).Complete(reconcile.Func(r.look))
	case side.Memory:
		return b.For(&corev1.Pod{}).Complete(reconcile.Func(r.nothing))
	case side.Foo:
		return b.For(&foo.Foo{}).Owns(&appsv1.Deployment{}).Complete(reconcile.Func(r.ensure))
	}
	events := make(chan event.GenericEvent, 1024)
	objects := make([]client.Object, r.job.Objects)
	for i := range objects {
		objects[i] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: side.Namespace, Name: side.NameOf(i)}}
	}
	r.job.Enqueue = func(i int) { events <- event.GenericEvent{Object: objects[i]} }
	return b.For(&foo.Foo{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).Owns(&appsv1.Deployment{}).
		WatchesRawSource(source.Channel(events, &handler.EnqueueRequestForObject{})).Complete(reconcile.Func(r.read))
}

// read reads a Foo and its Deployment, and writes the status if it is to.
func (r *reconciler) read(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f := &foo.Foo{}
	if err := r.Get(ctx, req.NamespacedName, f); err != nil {
		return ctrl.Result{}, err
	}
	d := &appsv1.Deployment{}
	if err := r.Get(ctx, types.NamespacedName{Namespace: f.Namespace, Name: f.Spec.DeploymentName}, d); err != nil {
		return ctrl.Result{}, err
	}
	if pass := r.job.Pass(); r.job.Task == side.Write && pass > 1 {
		f.Status = f.StatusFrom(d)
		f.Status.Pass = pass
		if err := r.Status().Update(ctx, f); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.job.Done(req.Name)
	return ctrl.Result{}, nil
}

func (r *reconciler) look(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f := &foo.Foo{}
	err := r.Get(ctx, req.NamespacedName, f)
	if err == nil {
		r.job.Saw(f)
	}
	return ctrl.Result{}, err
}

func (r *reconciler) nothing(context.Context, ctrl.Request) (ctrl.Result, error) {
	r.job.DoneAny()
	return ctrl.Result{}, nil
}

// ensure has the Deployment be what a Foo wants, and tells how it is.
func (r *reconciler) ensure(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f := &foo.Foo{}
	if err := r.Get(ctx, req.NamespacedName, f); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	d := &appsv1.Deployment{}
	err := r.Get(ctx, types.NamespacedName{Namespace: f.Namespace, Name: f.Spec.DeploymentName}, d)
	if apierrors.IsNotFound(err) {
		d = f.Deployment()
		if err = ctrl.SetControllerReference(f, d, r.scheme); err == nil {
			err = r.Create(ctx, d)
		}
		if apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, nil // it is about to be seen
		}
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	status := f.StatusFrom(d)
	if status == f.Status {
		return ctrl.Result{}, nil
	}
	f.Status = status
	return ctrl.Result{}, r.Status().Update(ctx, f)
}
