package job

import (
	"context"
	"fmt"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
)

// recollection is what a process knows of a job that no object says.
type recollection struct {
	job   types.UID
	fails backoff
	// let are pods that had lost their finalizer before this process first looked at
	// the job, whatever its cache says.
	let map[types.UID]bool
}

// trust leaves out pods of which it is known that they were counted.
func (k recollection) trust(pods []*corev1.Pod) []*corev1.Pod {
	if len(k.let) == 0 {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return k.let[p.UID] && tracked(p) })
}

// begin is what is to be known of a job at first sight. Another process may have
// counted pods of which this one's cache does not know that yet, even if it knows
// the new count: so the server is asked. One's own writes are always seen.
func (r *reconciler) begin(ctx context.Context, job *batchv1.Job, selector labels.Selector, pods []*corev1.Pod) (recollection, error) {
	k := recollection{job: job.UID, let: map[types.UID]bool{}}
	ended := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !tracked(p) || !ended(p) })
	if job.Status.StartTime != nil && len(ended) > 0 {
		live := map[types.UID]bool{}
		for p, err := range r.pods.Live().In(job.Namespace).List(ctx, client.Selector(selector)) {
			if err != nil {
				return k, fmt.Errorf("list pods: %w", err)
			}
			live[p.UID] = tracked(p)
		}
		for _, p := range ended {
			k.let[p.UID] = !live[p.UID]
		}
	}
	k.fails = since(job, k.trust(pods))
	return k, nil
}

// ended reports whether a pod may be counted as finished.
func ended(p *corev1.Pod) bool { return over(p) || p.DeletionTimestamp != nil }

// memory has what is known of jobs that are not finished.
type memory struct {
	mu   sync.Mutex
	jobs map[client.Key]recollection
}

func newMemory() *memory { return &memory{jobs: map[client.Key]recollection{}} }

func (m *memory) of(job *batchv1.Job) (recollection, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.jobs[client.KeyOf(job)]
	return k, ok && k.job == job.UID
}

func (m *memory) keep(job *batchv1.Job, k recollection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.jobs[client.KeyOf(job)] = k
}

func (m *memory) forget(key client.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs, key)
}
