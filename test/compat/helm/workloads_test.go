package helm

import (
	"context"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// runWorkloads stands in for controllers and nodes until the test ends: it says
// of each Job that it is done, of each Pod that it succeeded, of each Deployment
// that it is available.
func runWorkloads(t *testing.T, c kubernetes.Interface, ns string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(ns))
	var writes sync.WaitGroup
	finish := func(obj any) {
		writes.Go(func() {
			if err := finishWorkload(ctx, c, obj); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				t.Errorf("write a status: %v", err)
			}
		})
	}
	for _, i := range []cache.SharedIndexInformer{
		factory.Batch().V1().Jobs().Informer(), factory.Core().V1().Pods().Informer(), factory.Apps().V1().Deployments().Informer(),
	} {
		must(i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: finish, UpdateFunc: func(_, obj any) { finish(obj) }}))(t)
	}
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		writes.Wait()
	})
}

// finishWorkload writes the status of a workload that has come to rest, unless
// it has it.
func finishWorkload(ctx context.Context, c kubernetes.Interface, obj any) (err error) {
	switch o := obj.(type) {
	case *batchv1.Job:
		if o.Status.CompletionTime == nil {
			_, err = c.BatchV1().Jobs(o.Namespace).UpdateStatus(ctx, doneJob(o), metav1.UpdateOptions{})
		}
	case *corev1.Pod:
		if o.Status.Phase != corev1.PodSucceeded {
			o = o.DeepCopy()
			o.Status.Phase = corev1.PodSucceeded
			_, err = c.CoreV1().Pods(o.Namespace).UpdateStatus(ctx, o, metav1.UpdateOptions{})
		}
	case *appsv1.Deployment:
		if o.Status.ObservedGeneration < o.Generation {
			_, err = c.AppsV1().Deployments(o.Namespace).UpdateStatus(ctx, availableDeployment(o), metav1.UpdateOptions{})
		}
	}
	return err
}

func doneJob(job *batchv1.Job) *batchv1.Job {
	job = job.DeepCopy()
	now := metav1.Now()
	job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
		})
	}
	return job
}

func availableDeployment(d *appsv1.Deployment) *appsv1.Deployment {
	d = d.DeepCopy()
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	return d
}
