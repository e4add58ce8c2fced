package job_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/job"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// scene is a server whose pods the test itself runs.
type scene struct {
	*evenkeeltest.Env
	t    *testing.T
	pods *client.Client[*corev1.Pod]
	jobs *client.Client[*batchv1.Job]
}

func begin(t *testing.T, opts ...evenkeeltest.Option) *scene {
	t.Helper()
	env := evenkeeltest.Start(t, opts...)
	return &scene{
		Env: env, t: t,
		pods: client.Of[*corev1.Pod](env.Conn()).In("default"),
		jobs: client.Of[*batchv1.Job](env.Conn()).In("default"),
	}
}

// run is a program with the controllers.
func run(ctx context.Context, cfg *rest.Config) error {
	o := controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)}
	o.Informers.DetectMutations = true
	base, err := controller.NewBase(cfg, o)
	if err != nil {
		return err
	}
	told := events.New(base, events.Options{Component: "job-controller", Logger: o.Logger})
	for _, c := range job.New(base, told) {
		if err := base.Add(c); err != nil {
			return err
		}
	}
	var g errgroup.Group
	g.Go(func() error { return told.Run(ctx) })
	g.Go(func() error { return base.Run(ctx) })
	return g.Wait()
}

func key(name string) client.Key { return client.Key{Namespace: "default", Name: name} }

// work is a job of pods that run once.
func work(parallelism, completions int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "work"},
		Spec: batchv1.JobSpec{
			Parallelism: &parallelism, Completions: &completions,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "work:1"}},
			}},
		},
	}
}

// must is for calls that have to succeed: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (s *scene) create(j *batchv1.Job) *batchv1.Job {
	s.t.Helper()
	return must(s.jobs.Create(s.t.Context(), j))(s.t)
}

func (s *scene) change(patch string) {
	s.t.Helper()
	must(s.jobs.Patch(s.t.Context(), key("work"), client.MergePatch(patch)))(s.t)
}

// status waits until the counts of the job's status are these: active, ready,
// terminating, succeeded, failed.
func (s *scene) status(want string) *batchv1.Job {
	s.t.Helper()
	return evenkeeltest.Eventually(s.Env, key("work"), func(j *batchv1.Job) error {
		st := j.Status
		if st.Ready == nil || st.Terminating == nil {
			return fmt.Errorf("there is no status")
		}
		if got := fmt.Sprint(st.Active, *st.Ready, *st.Terminating, st.Succeeded, st.Failed); got != want {
			return fmt.Errorf("active, ready, terminating, succeeded, failed are %s, want %s", got, want)
		}
		return nil
	})
}

// ends waits until the job has ended, and checks how.
func (s *scene) ends(conditions ...string) *batchv1.Job {
	s.t.Helper()
	end := batchv1.JobConditionType(strings.SplitN(conditions[len(conditions)-1], " ", 2)[0])
	j := evenkeeltest.Eventually(s.Env, key("work"), evenkeeltest.Condition[*batchv1.Job](string(end), metav1.ConditionTrue))
	var got []string
	for _, c := range j.Status.Conditions {
		got = append(got, fmt.Sprintf("%s %s: %s", c.Type, c.Reason, c.Message))
	}
	if !slices.Equal(got, conditions) {
		s.t.Errorf("conditions are %q, want %q", got, conditions)
	}
	if u := j.Status.UncountedTerminatedPods; u != nil && len(u.Failed)+len(u.Succeeded) > 0 {
		s.t.Errorf("uncounted are %v", u)
	}
	for _, p := range s.all() {
		if len(p.Finalizers) > 0 {
			s.t.Errorf("%s has finalizers %v", p.Name, p.Finalizers)
		}
	}
	return j
}

func (s *scene) all() []*corev1.Pod {
	s.t.Helper()
	var pods []*corev1.Pod
	for p, err := range s.pods.List(s.t.Context()) {
		pods = append(pods, must(p, err)(s.t))
	}
	return pods
}

// living are the pods that may run, by name.
func (s *scene) living() []*corev1.Pod {
	s.t.Helper()
	pods := slices.DeleteFunc(s.all(), func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// start has a node run pods.
func (s *scene) start(pods ...*corev1.Pod) {
	s.t.Helper()
	for _, p := range pods {
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
		must(client.Sub[*corev1.Binding](s.pods, "binding").Create(s.t.Context(), client.KeyOf(p), binding))(s.t)
		s.report(p, corev1.PodRunning, metav1.ConditionTrue, nil)
	}
}

// exit has a pod's container end.
func (s *scene) exit(p *corev1.Pod, code int32) {
	s.t.Helper()
	phase := corev1.PodSucceeded
	if code != 0 {
		phase = corev1.PodFailed
	}
	s.report(p, phase, metav1.ConditionFalse, &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Now()})
}

func (s *scene) report(p *corev1.Pod, phase corev1.PodPhase, ready metav1.ConditionStatus, end *corev1.ContainerStateTerminated) {
	s.t.Helper()
	status := corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{
		Type: corev1.PodReady, Status: corev1.ConditionStatus(ready), LastTransitionTime: metav1.NewTime(time.Now()).Rfc3339Copy(),
	}}, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: end}}}}
	must(s.pods.Status().Patch(s.t.Context(), client.KeyOf(p), client.MergePatch(map[string]any{"status": status})))(s.t)
}

// bury has the node end the pods that are to end.
func (s *scene) bury() {
	s.t.Helper()
	for _, p := range s.all() {
		if p.DeletionTimestamp == nil {
			continue
		}
		if err := client.IgnoreNotFound(s.pods.Delete(s.t.Context(), client.KeyOf(p), client.Grace(0))); err != nil {
			s.t.Fatal(err)
		}
	}
}

// told waits for events about the job.
func (s *scene) told(kind events.Type, reason, begins string, count int) {
	s.t.Helper()
	evenkeeltest.EventuallyAll(s.Env, func(all []*eventsv1.Event) error {
		n := 0
		for _, e := range all {
			if e.Regarding.Kind == "Job" && e.Type == string(kind) && e.Reason == reason && strings.HasPrefix(e.Note, begins) {
				n++
			}
		}
		if n != count {
			return fmt.Errorf("%d events %s %q, want %d", n, reason, begins, count)
		}
		return nil
	})
}
