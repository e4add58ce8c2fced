package job

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// A process that takes over may have a cache of pods that is older than that of
// jobs: a pod still has the finalizer there, and is in the count already.
func TestPodsThatAnotherHasCountedAreNotCountedAgain(t *testing.T) {
	env := evenkeeltest.Start(t)
	pods := client.Of[*corev1.Pod](env.Conn()).In("default")
	r := &reconciler{jobs: client.Of[*batchv1.Job](env.Conn()), pods: pods, memory: newMemory()}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "work", UID: "job"},
		Spec:       batchv1.JobSpec{Parallelism: new(int32(1)), Completions: new(int32(3))},
		Status:     batchv1.JobStatus{StartTime: new(metav1.Now()), Succeeded: 1},
	}
	var cached []*corev1.Pod
	for name, counted := range map[string]bool{"counted": true, "fresh": false} {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "work"}, Finalizers: []string{batchv1.JobTrackingFinalizer}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "work:1"}}},
		}
		p, err := pods.Create(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		p.Status.Phase = corev1.PodSucceeded
		cached = append(cached, p)
		if counted {
			if err := r.free(t.Context(), job, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	known, err := r.begin(t.Context(), job, labels.SelectorFromSet(labels.Set{"app": "work"}), cached)
	if err != nil {
		t.Fatal(err)
	}
	left := known.trust(cached)
	if len(left) != 1 || left[0].Name != "fresh" {
		t.Errorf("of %d pods %d count: %v", len(cached), len(left), left)
	}
	if v := look(seen{job: job, pods: left}); v.succeeded != 2 {
		t.Errorf("%d pods have succeeded, want 2", v.succeeded)
	}
}
