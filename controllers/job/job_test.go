package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

func TestJobRunsPodsUntilEnoughHaveSucceeded(t *testing.T) {
	s := begin(t)
	s.Run(run)
	made := s.create(work(2, 3))
	if got := s.status("2 0 0 0 0"); got.Status.StartTime == nil {
		t.Error("there is no start time")
	}
	pods := s.living()
	for _, p := range pods {
		if !strings.HasPrefix(p.Name, "work-") || !metav1.IsControlledBy(p, made) ||
			!slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) || p.Labels["batch.kubernetes.io/job-name"] != "work" {
			t.Errorf("%s has labels %v, owners %v, finalizers %v", p.Name, p.Labels, p.OwnerReferences, p.Finalizers)
		}
	}
	s.start(pods...)
	s.status("2 2 0 0 0")
	s.exit(pods[0], 0)
	s.status("2 1 0 1 0")
	s.exit(pods[1], 0)
	s.status("1 0 0 2 0")
	s.exit(s.living()[0], 0)
	j := s.ends("SuccessCriteriaMet CompletionsReached: Reached expected number of succeeded pods",
		"Complete CompletionsReached: Reached expected number of succeeded pods")
	if j.Status.CompletionTime == nil || j.Status.Succeeded != 3 || j.Status.Active != 0 {
		t.Errorf("status is %+v", j.Status)
	}
	s.told(events.Normal, "SuccessfulCreate", "Created pod: work-", 3)
	s.told(events.Normal, "Completed", "Job completed", 1)
}

func TestWorkQueueEndsWithItsPods(t *testing.T) {
	s := begin(t)
	s.Run(run)
	j := work(3, 0)
	j.Spec.Completions = nil
	s.create(j)
	s.status("3 0 0 0 0")
	pods := s.living()
	s.exit(pods[0], 0)
	s.status("2 0 0 1 0")
	s.exit(pods[1], 1)
	s.status("1 0 0 1 1")
	s.exit(pods[2], 0)
	s.ends("SuccessCriteriaMet CompletionsReached: Reached expected number of succeeded pods",
		"Complete CompletionsReached: Reached expected number of succeeded pods")
}

func TestIndexedPodsKnowTheirIndex(t *testing.T) {
	s := begin(t)
	s.Run(run)
	j := work(3, 5)
	j.Spec.CompletionMode = new(batchv1.IndexedCompletion)
	s.create(j)
	s.status("3 0 0 0 0")
	for i, p := range s.living() {
		index := fmt.Sprint(i)
		if !strings.HasPrefix(p.Name, "work-"+index+"-") || p.Spec.Hostname != "work-"+index ||
			p.Annotations[batchv1.JobCompletionIndexAnnotation] != index || p.Labels[batchv1.JobCompletionIndexAnnotation] != index {
			t.Errorf("%s has hostname %s, annotations %v, labels %v", p.Name, p.Spec.Hostname, p.Annotations, p.Labels)
		}
		if env := p.Spec.Containers[0].Env; len(env) != 1 || env[0].Name != "JOB_COMPLETION_INDEX" ||
			env[0].ValueFrom.FieldRef.FieldPath != "metadata.labels['batch.kubernetes.io/job-completion-index']" {
			t.Errorf("%s has variables %v", p.Name, env)
		}
	}
	exit := func(index string) {
		t.Helper()
		for _, p := range s.living() {
			if p.Labels[batchv1.JobCompletionIndexAnnotation] == index {
				s.exit(p, 0)
				return
			}
		}
		t.Fatalf("no pod of index %s", index)
	}
	for _, step := range []struct{ index, status, done string }{
		{"0", "3 0 0 1 0", "0"}, {"2", "3 0 0 2 0", "0,2"}, {"1", "2 0 0 3 0", "0-2"}, {"4", "1 0 0 4 0", "0-2,4"},
	} {
		exit(step.index)
		if got := s.status(step.status).Status.CompletedIndexes; got != step.done {
			t.Errorf("completed indexes are %q, want %q", got, step.done)
		}
	}
	exit("3")
	j = s.ends("SuccessCriteriaMet CompletionsReached: Reached expected number of succeeded pods",
		"Complete CompletionsReached: Reached expected number of succeeded pods")
	if j.Status.CompletedIndexes != "0-4" {
		t.Errorf("completed indexes are %q", j.Status.CompletedIndexes)
	}
}

func TestFailedPodsAreReplacedLaterEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, evenkeeltest.Bubble())
		s.Run(run)
		j := work(1, 1)
		j.Spec.BackoffLimit = new(int32(3))
		s.create(j)
		for i, pause := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second} {
			if pause > 0 {
				time.Sleep(pause - time.Second)
				synctest.Wait()
				if n := len(s.living()); n > 0 {
					t.Errorf("failure %d: a pod was made too early", i)
				}
				time.Sleep(2 * time.Second)
			}
			synctest.Wait()
			s.status(fmt.Sprintf("1 0 0 0 %d", i))
			pod := s.living()[0]
			s.start(pod)
			s.exit(pod, 1)
			synctest.Wait()
		}
		j = s.ends("FailureTarget BackoffLimitExceeded: Job has reached the specified backoff limit",
			"Failed BackoffLimitExceeded: Job has reached the specified backoff limit")
		if j.Status.Failed != 4 || j.Status.CompletionTime != nil {
			t.Errorf("status is %+v", j.Status)
		}
		s.told(events.Warning, "BackoffLimitExceeded", "Job has reached the specified backoff limit", 1)
	})
}

func TestDeadlineEndsAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, evenkeeltest.Bubble())
		s.Run(run)
		j := work(2, 2)
		j.Spec.ActiveDeadlineSeconds = new(int64(3600))
		s.create(j)
		s.status("2 0 0 0 0")
		s.start(s.living()...)
		time.Sleep(3590 * time.Second)
		synctest.Wait()
		s.status("2 2 0 0 0")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		s.status("0 0 2 0 2") // the node has yet to end them
		s.bury()
		s.ends("FailureTarget DeadlineExceeded: Job was active longer than specified deadline",
			"Failed DeadlineExceeded: Job was active longer than specified deadline")
		s.told(events.Warning, "DeadlineExceeded", "Job was active longer than specified deadline", 1)
		s.told(events.Normal, "SuccessfulDelete", "Deleted pod: work-", 2)
	})
}

func TestSuspendedJobsHaveNoPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, evenkeeltest.Bubble())
		s.Run(run)
		s.create(work(2, 2))
		first := s.status("2 0 0 0 0").Status.StartTime
		s.start(s.living()...)
		time.Sleep(time.Minute)
		s.change(`{"spec":{"suspend":true}}`)
		j := s.status("0 0 2 0 0")
		if c := j.Status.Conditions; len(c) != 1 || c[0].Type != batchv1.JobSuspended || c[0].Status != corev1.ConditionTrue || c[0].Reason != "JobSuspended" || c[0].Message != "Job suspended" || j.Status.StartTime != nil {
			t.Errorf("status is %+v", j.Status)
		}
		s.bury()
		s.status("0 0 0 0 0") // what was taken away has not failed
		s.told(events.Normal, "Suspended", "Job suspended", 1)
		time.Sleep(time.Minute)
		s.change(`{"spec":{"suspend":false}}`)
		j = s.status("2 0 0 0 0")
		if c := j.Status.Conditions; len(c) != 1 || c[0].Status != corev1.ConditionFalse || c[0].Reason != "JobResumed" || !j.Status.StartTime.After(first.Time) {
			t.Errorf("status is %+v", j.Status)
		}
		s.told(events.Normal, "Resumed", "Job resumed", 1)
	})
}

func TestPodFailurePolicyFailsTheJob(t *testing.T) {
	s := begin(t)
	s.Run(run)
	j := work(2, 2)
	j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}},
		{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}}},
	}}
	s.create(j)
	s.status("2 0 0 0 0")
	pods := s.living()
	s.exit(pods[0], 42)
	why := fmt.Sprintf("Container main for pod default/%s failed with exit code 42 matching FailJob rule at index 1", pods[0].Name)
	j = s.ends("FailureTarget PodFailurePolicy: "+why, "Failed PodFailurePolicy: "+why)
	if j.Status.Failed != 2 {
		t.Errorf("%d have failed, and 2 did: the other was deleted", j.Status.Failed)
	}
	s.told(events.Warning, "PodFailurePolicy", why, 1)
}

func TestFailedIndexesAreTriedAgainAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, evenkeeltest.Bubble())
		s.Run(run)
		j := work(2, 2)
		j.Spec.CompletionMode, j.Spec.BackoffLimitPerIndex = new(batchv1.IndexedCompletion), new(int32(1))
		s.create(j)
		s.status("2 0 0 0 0")
		s.exit(s.living()[0], 1)
		s.status("1 0 0 0 0") // the failure is counted when the pod is replaced
		time.Sleep(11 * time.Second)
		s.status("2 0 0 0 1")
		again := s.living()[0]
		if again.Annotations[batchv1.JobCompletionIndexAnnotation] != "0" || again.Annotations[batchv1.JobIndexFailureCountAnnotation] != "1" {
			t.Errorf("annotations are %v", again.Annotations)
		}
		s.exit(again, 1)
		if got := s.status("1 0 0 0 2").Status.FailedIndexes; got == nil || *got != "0" {
			t.Errorf("failed indexes are %v", got)
		}
		s.exit(s.living()[0], 0)
		j = s.ends("FailureTarget FailedIndexes: Job has failed indexes", "Failed FailedIndexes: Job has failed indexes")
		if j.Status.CompletedIndexes != "1" || *j.Status.FailedIndexes != "0" || j.Status.Succeeded != 1 {
			t.Errorf("status is %+v", j.Status)
		}
	})
}

func TestSuccessPolicyEndsAJobEarly(t *testing.T) {
	s := begin(t)
	s.Run(run)
	j := work(3, 3)
	j.Spec.CompletionMode = new(batchv1.IndexedCompletion)
	j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("0-1"), SucceededCount: new(int32(1))}}}
	s.create(j)
	s.status("3 0 0 0 0")
	pods := s.living()
	s.start(pods[2])
	s.exit(pods[2], 0)
	s.status("2 0 0 1 0")
	s.start(pods[0], pods[1])
	s.exit(pods[1], 0)
	s.status("0 0 1 2 0")
	s.bury()
	s.ends("SuccessCriteriaMet SuccessPolicy: Matched rules at index 0", "Complete SuccessPolicy: Matched rules at index 0")
}

func TestReplacementWaitsForTheEnd(t *testing.T) {
	s := begin(t)
	s.Run(run)
	j := work(1, 1)
	j.Spec.PodReplacementPolicy = new(batchv1.Failed)
	s.create(j)
	s.status("1 0 0 0 0")
	pod := s.living()[0]
	s.start(pod)
	if err := s.pods.Delete(t.Context(), client.KeyOf(pod), client.Grace(30*time.Second)); err != nil {
		t.Fatal(err)
	}
	s.status("0 0 1 0 0")
	s.exit(pod, 0) // just in time
	s.ends("SuccessCriteriaMet CompletionsReached: Reached expected number of succeeded pods",
		"Complete CompletionsReached: Reached expected number of succeeded pods")
}

func TestJobsOfOthersAreLeftAlone(t *testing.T) {
	s := begin(t)
	s.Run(run)
	other := work(1, 1)
	other.Name, other.Spec.ManagedBy = "other", new("example.com/queue")
	s.create(other)
	s.create(work(1, 1))
	s.status("1 0 0 0 0")
	if j := must(s.jobs.Get(t.Context(), key("other")))(t); j.Status.StartTime != nil || len(s.living()) != 1 {
		t.Errorf("status is %+v, and there are %d pods", j.Status, len(s.living()))
	}
}

// A pod whose job is gone is not kept from going.
func TestPodsAreLetGoWithTheirJob(t *testing.T) {
	s := begin(t)
	stop := s.Run(run)
	s.create(work(2, 2))
	s.status("2 0 0 0 0")
	stop()
	if err := s.jobs.Delete(t.Context(), key("work"), client.Propagation(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	pods := s.living()
	must(s.pods.Patch(t.Context(), client.KeyOf(pods[0]), client.MergePatch(`{"metadata":{"ownerReferences":null}}`)))(t)
	if err := s.pods.Delete(t.Context(), client.KeyOf(pods[1])); err != nil { // as the garbage collector does
		t.Fatal(err)
	}
	s.Run(run)
	evenkeeltest.EventuallyGone[*corev1.Pod](s.Env, client.KeyOf(pods[1]))
	evenkeeltest.Eventually(s.Env, client.KeyOf(pods[0]), func(p *corev1.Pod) error {
		if len(p.Finalizers) > 0 {
			return fmt.Errorf("%s has finalizers %v", p.Name, p.Finalizers)
		}
		return nil
	})
}

// A job that waits for its pods to go does not keep them.
func TestPodsOfAJobThatIsBeingDeletedAreLetGo(t *testing.T) {
	s := begin(t)
	s.Run(run)
	s.create(work(2, 2))
	s.status("2 0 0 0 0")
	pods := s.living()
	if err := s.jobs.Delete(t.Context(), key("work"), client.Propagation(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods { // as the garbage collector does
		if err := s.pods.Delete(t.Context(), client.KeyOf(p)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range pods {
		evenkeeltest.EventuallyGone[*corev1.Pod](s.Env, client.KeyOf(p))
	}
	if n := len(s.all()); n != 0 {
		t.Errorf("%d pods were made for a job that goes", n)
	}
}

func TestOrphansAreAdoptedAndTracked(t *testing.T) {
	s := begin(t)
	labels := map[string]string{"app": "work"}
	j := work(1, 1)
	j.Spec.ManualSelector, j.Spec.Selector = new(true), &metav1.LabelSelector{MatchLabels: labels}
	j.Spec.Template.Labels = labels
	orphan := must(s.pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orphan", Labels: labels}, Spec: j.Spec.Template.Spec,
	}))(t)
	s.Run(run)
	made := s.create(j)
	s.status("1 0 0 0 0")
	p := evenkeeltest.Eventually(s.Env, client.KeyOf(orphan), func(p *corev1.Pod) error {
		if !slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
			return fmt.Errorf("finalizers are %v", p.Finalizers)
		}
		return nil
	})
	if !metav1.IsControlledBy(p, made) || len(s.living()) != 1 {
		t.Errorf("owners are %v, and there are %d pods", p.OwnerReferences, len(s.living()))
	}
	s.exit(p, 0)
	s.ends("SuccessCriteriaMet CompletionsReached: Reached expected number of succeeded pods",
		"Complete CompletionsReached: Reached expected number of succeeded pods")
}

// Connections that break, and servers and controllers that start anew, lose no pod
// and count none twice.
func TestJobConvergesWhateverBreaks(t *testing.T) {
	s := begin(t)
	stop := s.Run(run)
	s.create(work(3, 12))
	breaks := []func(){s.Cut, func() { s.Restart(nil) }, func() { stop(); stop = s.Run(run) }}
	for done := 0; done < 12; done++ {
		evenkeeltest.EventuallyAll(s.Env, func(pods []*corev1.Pod) error {
			if n := len(pods) - done; n != min(3, 12-done) {
				return fmt.Errorf("%d pods run after %d are done", n, done)
			}
			return nil
		})
		s.exit(s.living()[0], 0)
		breaks[done%len(breaks)]()
	}
	j := s.ends("SuccessCriteriaMet CompletionsReached: Reached expected number of succeeded pods",
		"Complete CompletionsReached: Reached expected number of succeeded pods")
	if j.Status.Succeeded != 12 || j.Status.Failed != 0 || len(s.all()) != 12 {
		t.Errorf("%d have succeeded, %d failed, of %d", j.Status.Succeeded, j.Status.Failed, len(s.all()))
	}
}
