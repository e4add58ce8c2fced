package kinds

import (
	"fmt"
	"maps"
	"math"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Labels of a job's pods. The ones without prefix are older.
const (
	jobUIDLabel     = batchv1.ControllerUidLabel
	jobNameLabel    = batchv1.JobNameLabel
	oldJobUIDLabel  = "controller-uid"
	oldJobNameLabel = "job-name"
)

func jobKind() *Kind {
	return &Kind{
		GVK:      batchv1.SchemeGroupVersion.WithKind("Job"),
		Resource: "jobs", Singular: "job",
		Categories: []string{"all"}, Namespaced: true,
		New: newOf[batchv1.Job], NewList: newOf[batchv1.JobList],
		HasStatus: true, HasGeneration: true, Orphans: true,
		Default:        each(defaultJob),
		PrepareCreate:  each(prepareJob),
		Validate:       check(validateJob),
		ValidateUpdate: checkPair(validateJobUpdate),
		ValidateStatus: checkPair(validateJobStatus),
		Warnings: warn(func(j, old *batchv1.Job) []string {
			if old != nil && equality.Semantic.DeepEqual(j.Spec, old.Spec) {
				return nil
			}
			out := jobSpecWarnings(field.NewPath("spec"), &j.Spec)
			if old == nil {
				out = append(podNameWarning(j.Name), out...)
			}
			return out
		}),
		Fields: []string{"status.successful"},
		FieldSet: fieldSet(func(j *batchv1.Job) fields.Set {
			return fields.Set{"status.successful": strconv.Itoa(int(j.Status.Succeeded))}
		}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Status", "How far the job is."), column("Completions", "Pods that succeeded of those wanted."),
			column("Duration", "Time that the job has taken."),
			ageColumn(), containersColumn(), imagesColumn(), selectorColumn(),
		},
		Cells: cells(jobCells),
	}
}

// defaultJob lets a job without labels share the map of its template's labels,
// so that it also gets the labels that prepareJob adds to the template.
func defaultJob(j *batchv1.Job) {
	s := &j.Spec
	if s.Parallelism == nil {
		setDefault(&s.Parallelism, 1)
		if s.Completions == nil {
			setDefault(&s.Completions, 1)
		}
	}
	if s.BackoffLimitPerIndex != nil {
		setDefault(&s.BackoffLimit, math.MaxInt32)
	}
	setDefault(&s.BackoffLimit, 6)
	if s.Template.Labels != nil && len(j.Labels) == 0 {
		j.Labels = s.Template.Labels
	}
	setDefault(&s.CompletionMode, batchv1.NonIndexedCompletion)
	setDefault(&s.Suspend, false)
	if s.PodFailurePolicy != nil {
		setDefault(&s.PodReplacementPolicy, batchv1.Failed)
	}
	setDefault(&s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	setDefault(&s.ManualSelector, false)
	defaultJobTemplate(s)
}

// defaultJobTemplate fills in what jobs and the jobs of a CronJob share.
func defaultJobTemplate(s *batchv1.JobSpec) {
	if s.PodFailurePolicy != nil {
		for _, rule := range s.PodFailurePolicy.Rules {
			for i := range rule.OnPodConditions {
				setEmpty(&rule.OnPodConditions[i].Status, corev1.ConditionTrue)
			}
		}
	}
	defaultPodSpec(&s.Template.Spec)
}

// prepareJob makes the selector and the labels of the job's pods, unless the
// user manages them.
func prepareJob(j *batchv1.Job) {
	if j.Spec.ManualSelector == nil || !*j.Spec.ManualSelector {
		generateJobLabels(j)
	}
	if len(j.Labels) == 0 && len(j.Spec.Template.Labels) > 0 {
		j.Labels = j.Spec.Template.Labels
	}
	j.Labels = maps.Clone(j.Labels)
}

func generateJobLabels(j *batchv1.Job) {
	t := &j.Spec.Template
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	for label, value := range map[string]string{
		jobNameLabel: j.Name, oldJobNameLabel: j.Name, jobUIDLabel: string(j.UID), oldJobUIDLabel: string(j.UID),
	} {
		if _, set := t.Labels[label]; !set {
			t.Labels[label] = value
		}
	}
	setDefault(&j.Spec.Selector, metav1.LabelSelector{})
	if j.Spec.Selector.MatchLabels == nil {
		j.Spec.Selector.MatchLabels = map[string]string{}
	}
	if _, set := j.Spec.Selector.MatchLabels[jobUIDLabel]; !set {
		j.Spec.Selector.MatchLabels[jobUIDLabel] = string(j.UID)
	}
}

const (
	manyCompletions = 100_000
	manyParallel    = 10_000
)

func jobSpecWarnings(path *field.Path, s *batchv1.JobSpec) []string {
	var out []string
	if jobIndexed(s) && replicasOf(s.Completions) > manyCompletions && replicasOf(s.Parallelism) > manyParallel {
		out = append(out, fmt.Sprintf("%s: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail", path))
	}
	return append(out, podTemplateWarnings(&s.Template, path.Child("template"))...)
}

func jobIndexed(s *batchv1.JobSpec) bool {
	return s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion
}

func jobCondition(j *batchv1.Job, t batchv1.JobConditionType, status corev1.ConditionStatus) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == t && c.Status == status {
			return true
		}
	}
	return false
}

func jobIs(j *batchv1.Job, t batchv1.JobConditionType) bool {
	return jobCondition(j, t, corev1.ConditionTrue)
}

func jobCells(j *batchv1.Job, now metav1.Time) []any {
	names, images := containerCells(j.Spec.Template.Spec.Containers)
	return []any{j.Name, jobState(j), jobProgress(j), jobDuration(j, now), Age(j.CreationTimestamp, now),
		names, images, metav1.FormatLabelSelector(j.Spec.Selector)}
}

func jobState(j *batchv1.Job) string {
	switch {
	case jobIs(j, batchv1.JobComplete):
		return "Complete"
	case jobIs(j, batchv1.JobFailed):
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	}
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuspended, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet} {
		if jobIs(j, t) {
			return string(t)
		}
	}
	return "Running"
}

func jobProgress(j *batchv1.Job) string {
	switch parallel := replicasOf(j.Spec.Parallelism); {
	case j.Spec.Completions != nil:
		return fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	case parallel > 1:
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, parallel)
	default:
		return fmt.Sprintf("%d/1", j.Status.Succeeded)
	}
}

func jobDuration(j *batchv1.Job, now metav1.Time) string {
	if j.Status.StartTime == nil {
		return ""
	}
	end := now.Time
	if j.Status.CompletionTime != nil {
		end = j.Status.CompletionTime.Time
	}
	return duration.HumanDuration(end.Sub(j.Status.StartTime.Time))
}
