package controllerruntime

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

const (
	finalizer = "example.com/copier"
	copiedBy  = "example.com/copied-by"
)

// copier is an operator in small: it keeps a Secret with the data of each
// ConfigMap, and a Deployment that uses it. Both belong to the ConfigMap.
type copier struct {
	client.Client
	name   string
	events recorder.EventRecorder
}

func (r *copier) setUp(m ctrl.Manager) error {
	r.Client, r.events = m.GetClient(), m.GetEventRecorder(r.name)
	once := true // names of controllers need not be unique among tests
	return ctrl.NewControllerManagedBy(m).Named("copier").For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{SkipNameValidation: &once}).Complete(r)
}

func (r *copier) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var source corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !source.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.release(ctx, &source)
	}
	if controllerutil.AddFinalizer(&source, finalizer) {
		if err := r.Update(ctx, &source); err != nil {
			return ctrl.Result{}, fmt.Errorf("hold %s: %w", req, err)
		}
	}
	if err := r.copy(ctx, &source); err != nil {
		return ctrl.Result{}, fmt.Errorf("copy %s: %w", req, err)
	}
	if err := r.run(ctx, &source); err != nil {
		return ctrl.Result{}, fmt.Errorf("run %s: %w", req, err)
	}
	return ctrl.Result{}, r.sign(ctx, &source)
}

// copy writes the Secret, and tells of it once it is made.
func (r *copier) copy(ctx context.Context, source *corev1.ConfigMap) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: source.Name, Namespace: source.Namespace}}
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		secret.Data = map[string][]byte{}
		for key, value := range source.Data {
			secret.Data[key] = []byte(value)
		}
		return controllerutil.SetControllerReference(source, secret, r.Scheme())
	})
	if err == nil && done == controllerutil.OperationResultCreated {
		r.events.Eventf(source, secret, corev1.EventTypeNormal, "Copied", "Copy", "copied to Secret %s", secret.Name)
	}
	return err
}

// run applies the Deployment, and no more of it than it has an opinion on.
func (r *copier) run(ctx context.Context, source *corev1.ConfigMap) error {
	labels := map[string]string{"copy": source.Name}
	wanted := appsapply.Deployment(source.Name, source.Namespace).
		WithOwnerReferences(metaapply.OwnerReference().WithAPIVersion("v1").WithKind("ConfigMap").
			WithName(source.Name).WithUID(source.UID).WithController(true)).
		WithSpec(appsapply.DeploymentSpec().
			WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(coreapply.PodSpec().
				WithContainers(coreapply.Container().WithName("main").WithImage(source.Data["image"])))))
	return r.Apply(ctx, wanted, client.FieldOwner("copier"), client.ForceOwnership)
}

// sign patches who has copied it into the ConfigMap.
func (r *copier) sign(ctx context.Context, source *corev1.ConfigMap) error {
	if source.Annotations[copiedBy] == r.name {
		return nil
	}
	signed := source.DeepCopy()
	metav1.SetMetaDataAnnotation(&signed.ObjectMeta, copiedBy, r.name)
	return r.Patch(ctx, signed, client.MergeFromWithOptions(source, client.MergeFromWithOptimisticLock{}))
}

// release deletes what a dying ConfigMap has, and lets it go.
func (r *copier) release(ctx context.Context, source *corev1.ConfigMap) error {
	meta := metav1.ObjectMeta{Name: source.Name, Namespace: source.Namespace}
	for _, obj := range []client.Object{&corev1.Secret{ObjectMeta: meta}, &appsv1.Deployment{ObjectMeta: meta}} {
		if err := client.IgnoreNotFound(r.Delete(ctx, obj)); err != nil {
			return err
		}
	}
	if !controllerutil.RemoveFinalizer(source, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(r.Update(ctx, source))
}
