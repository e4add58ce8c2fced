package job

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// world is a model of a server with one job, a node that runs its pods, people who
// interfere, and a controller that may crash after every single request.
type world struct {
	*rand.Rand
	job    *batchv1.Job
	pods   []*corev1.Pod
	fails  backoff
	now    time.Time
	names  int
	listed map[types.UID]bool // all that statuses ever listed
	done   map[types.UID]corev1.PodPhase
	dodged map[types.UID]bool // deleted by the controller, not to be counted
}

func newWorld(seed uint64) *world {
	w := &world{
		Rand: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
		listed: map[types.UID]bool{}, done: map[types.UID]corev1.PodPhase{}, dodged: map[types.UID]bool{},
	}
	w.job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", UID: "job"}, Spec: w.spec()}
	return w
}

func (w *world) maybe() bool { return w.IntN(2) == 0 }

func (w *world) some(n int) *int32 { return new(int32(w.IntN(n))) }

func (w *world) spec() batchv1.JobSpec {
	s := batchv1.JobSpec{Parallelism: new(int32(1 + w.IntN(4))), BackoffLimit: w.some(4)}
	s.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	switch w.IntN(3) {
	case 0:
		s.Completions = w.some(7)
	case 1:
		s.Completions, s.CompletionMode = w.some(7), new(batchv1.IndexedCompletion)
		if w.maybe() {
			s.BackoffLimitPerIndex, s.BackoffLimit = w.some(3), new(int32(1000))
			if w.maybe() {
				s.MaxFailedIndexes = w.some(3)
			}
		}
		if w.maybe() {
			s.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: new(int32(1 + w.IntN(4)))}}}
		}
	}
	if w.maybe() {
		s.PodReplacementPolicy = new(batchv1.Failed)
	}
	if w.IntN(4) == 0 {
		s.ActiveDeadlineSeconds = new(int64(60 + w.IntN(1000)))
	}
	if s.PodReplacementPolicy != nil && w.maybe() {
		s.PodFailurePolicy = w.policy(s.BackoffLimitPerIndex != nil)
	}
	return s
}

func (w *world) policy(perIndex bool) *batchv1.PodFailurePolicy {
	actions := []batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionFailJob}
	if perIndex {
		actions = append(actions, batchv1.PodFailurePolicyActionFailIndex)
	}
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:      actions[w.IntN(len(actions))],
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{2}},
	}}}
}

// controller takes one step, or a part of it and crashes.
func (w *world) controller(mayCrash bool) (plan, error) {
	w.fails = w.fails.after(w.job, w.pods)
	do := decide(seen{job: w.job.DeepCopy(), pods: w.copies(), fails: w.fails, now: w.now})
	requests := w.requests(do)
	if mayCrash && w.IntN(4) == 0 {
		requests = requests[:w.IntN(len(requests)+1)]
		w.fails = since(w.job, w.pods)
	}
	for _, request := range requests {
		if err := request(); err != nil {
			return do, err
		}
	}
	return do, nil
}

func (w *world) copies() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range w.pods {
		out = append(out, p.DeepCopy())
	}
	w.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func (w *world) requests(do plan) []func() error {
	var out []func() error
	each := func(pods []*corev1.Pod, f func(types.UID)) {
		for _, p := range pods {
			out = append(out, func() error { f(p.UID); return nil })
		}
	}
	for _, s := range do.create {
		out = append(out, func() error { return w.create(s) })
	}
	each(do.remove, w.remove)
	for _, p := range do.discard {
		each([]*corev1.Pod{p}, func(uid types.UID) { w.dodged[uid] = true; w.free(uid) })
		each([]*corev1.Pod{p}, w.remove)
	}
	each(do.track, w.track)
	if do.status != nil {
		out = append(out, func() error { return w.write(do.status) })
	}
	each(do.free, w.free)
	return out
}

func (w *world) create(s slot) error {
	w.names++
	p := podOf(w.job, s)
	p.Name, p.UID = fmt.Sprint("p", w.names), types.UID(strconv.Itoa(w.names))
	p.CreationTimestamp = metav1.NewTime(w.now)
	p.Status.Phase = corev1.PodPending
	w.pods = append(w.pods, p)
	if n, most := len(w.running()), int(*w.job.Spec.Parallelism); n > most {
		return fmt.Errorf("%d pods run, parallelism is %d", n, most)
	}
	return nil
}

func (w *world) running() []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(w.pods), func(p *corev1.Pod) bool { return !active(p) })
}

func (w *world) with(uid types.UID, f func(*corev1.Pod)) {
	for _, p := range w.pods {
		if p.UID == uid {
			f(p)
		}
	}
	w.bury()
}

// bury is what the server does: what is deleted, has ended and has no finalizer goes.
func (w *world) bury() {
	w.pods = slices.DeleteFunc(w.pods, func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil && !tracked(p) && (over(p) || p.Status.Phase == corev1.PodPending)
	})
}

func (w *world) remove(uid types.UID) {
	w.with(uid, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(w.now)) })
}

func (w *world) free(uid types.UID) { w.with(uid, func(p *corev1.Pod) { p.Finalizers = nil }) }

func (w *world) track(uid types.UID) {
	delete(w.dodged, uid)
	w.with(uid, func(p *corev1.Pod) { p.Finalizers = []string{batchv1.JobTrackingFinalizer} })
}

// write checks a status against those before it.
func (w *world) write(status *batchv1.JobStatus) error {
	was := w.job.Status
	u := status.UncountedTerminatedPods
	before := slices.Concat(uncounted(w.job).Succeeded, uncounted(w.job).Failed)
	for _, uid := range slices.Concat(u.Succeeded, u.Failed) {
		if w.listed[uid] && !slices.Contains(before, uid) {
			return fmt.Errorf("pod %s is listed again", uid)
		}
		w.listed[uid] = true
	}
	counted := int(status.Failed) + len(u.Failed)
	if w.job.Spec.CompletionMode == nil {
		counted += int(status.Succeeded) + len(u.Succeeded)
	}
	if counted != len(w.listed) {
		return fmt.Errorf("%d pods are counted, %d were listed", counted, len(w.listed))
	}
	if equality.Semantic.DeepEqual(was, *status) {
		return fmt.Errorf("a status is written that changes nothing")
	}
	w.job.Status = *status
	return nil
}

// node has something happen to a pod.
func (w *world) node() {
	if len(w.pods) == 0 {
		return
	}
	p := w.pods[w.IntN(len(w.pods))]
	switch {
	case over(p):
	case p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil:
		p.Status.Phase = corev1.PodRunning
	case p.Status.Phase == corev1.PodPending:
		p.Status.Phase = corev1.PodFailed
	default:
		w.end(p)
	}
	if over(p) && tracked(p) { // else the job had let go of it
		w.done[p.UID] = p.Status.Phase
	}
	w.bury()
}

func (w *world) end(p *corev1.Pod) {
	code := int32(0)
	p.Status.Phase = corev1.PodSucceeded
	if w.IntN(3) == 0 {
		p.Status.Phase, code = corev1.PodFailed, int32(1+w.IntN(2))
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(w.now)},
	}}}
}

// people delete pods, suspend and resume.
func (w *world) people() {
	switch w.IntN(3) {
	case 0:
		w.job.Spec.Suspend = new(w.maybe())
	case 1:
		if len(w.pods) > 0 {
			w.remove(w.pods[w.IntN(len(w.pods))].UID)
		}
	}
}
