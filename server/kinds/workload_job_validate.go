package kinds

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateJob(j *batchv1.Job) field.ErrorList {
	p := &problems{}
	p.generatedSelector(j)
	p.ownedJobSpec(field.NewPath("spec"), &j.Spec)
	if jobIndexed(&j.Spec) && replicasOf(j.Spec.Completions) > 0 {
		if host := fmt.Sprintf("%s-%d", j.Name, *j.Spec.Completions-1); len(validation.IsDNS1123Label(host)) > 0 {
			p.invalid(field.NewPath("metadata", "name"), j.Name, "will not able to create pod with invalid DNS label: "+host)
		}
	}
	return p.list
}

// generatedSelector checks that the user did not contradict the labels that
// prepareJob makes.
func (p *problems) generatedSelector(j *batchv1.Job) {
	if j.Spec.Selector == nil || j.Spec.ManualSelector != nil && *j.Spec.ManualSelector {
		return
	}
	if j.UID == "" {
		p.required(field.NewPath("metadata", "uid"), "")
	}
	want := map[string]string{}
	for _, l := range [][2]string{
		{oldJobUIDLabel, string(j.UID)}, {oldJobNameLabel, j.Name}, {jobUIDLabel, string(j.UID)}, {jobNameLabel, j.Name},
	} {
		want[l[0]] = l[1]
		p.hasLabel(field.NewPath("spec", "template", "metadata", "labels").Key(l[0]), j.Spec.Template.Labels, l[0], l[1])
	}
	if sel, err := metav1.LabelSelectorAsSelector(j.Spec.Selector); err == nil && !sel.Matches(labels.Set(want)) {
		p.invalid(field.NewPath("spec", "selector"), j.Spec.Selector, "`selector` not auto-generated")
	}
}

func (p *problems) hasLabel(path *field.Path, set map[string]string, label, want string) {
	switch got, ok := set[label]; {
	case !ok:
		p.required(path, fmt.Sprintf("must be '%s'", want))
	case got != want:
		p.invalid(path, set, fmt.Sprintf("must be '%s'", want))
	}
}

// ownedJobSpec checks the spec of a job, which has a selector by now; jobSpec
// that of a job to be.
func (p *problems) ownedJobSpec(path *field.Path, s *batchv1.JobSpec) {
	p.jobSpec(path, s)
	if s.Selector == nil {
		p.required(path.Child("selector"), "")
	} else {
		p.add(metavalidation.ValidateLabelSelector(s.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
	}
	if sel, err := metav1.LabelSelectorAsSelector(s.Selector); err == nil && !sel.Matches(labels.Set(s.Template.Labels)) {
		p.mismatch(path.Child("template"), &s.Template)
	}
}

func (p *problems) jobSpec(path *field.Path, s *batchv1.JobSpec) {
	p.nonNegativeIf(path.Child("parallelism"), s.Parallelism)
	p.nonNegativeIf(path.Child("completions"), s.Completions)
	if s.ActiveDeadlineSeconds != nil {
		p.nonNegative(path.Child("activeDeadlineSeconds"), *s.ActiveDeadlineSeconds)
	}
	p.nonNegativeIf(path.Child("backoffLimit"), s.BackoffLimit)
	p.nonNegativeIf(path.Child("ttlSecondsAfterFinished"), s.TTLSecondsAfterFinished)
	p.nonNegativeIf(path.Child("backoffLimitPerIndex"), s.BackoffLimitPerIndex)
	if s.MaxFailedIndexes != nil {
		p.nonNegativeIf(path.Child("maxFailedIndexes"), s.MaxFailedIndexes)
		if s.BackoffLimitPerIndex == nil {
			p.required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
		}
	}
	if s.ManagedBy != nil {
		p.add(validation.IsDomainPrefixedPath(path.Child("managedBy"), *s.ManagedBy)...)
		if len(*s.ManagedBy) > 63 {
			p.add(field.TooLong(path.Child("managedBy"), "", 63))
		}
	}
	p.completionMode(path, s)
	p.jobPolicies(path, s)
	p.add(validatePodTemplate(&s.Template, path.Child("template"))...)
	p.jobRestartPolicy(path.Child("template", "spec", "restartPolicy"), s)
}

func (p *problems) completionMode(path *field.Path, s *batchv1.JobSpec) {
	if s.CompletionMode != nil {
		oneOf(p, path.Child("completionMode"), *s.CompletionMode, batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)
	}
	if jobIndexed(s) {
		p.indexedJob(path, s)
		return
	}
	if s.CompletionMode == nil || *s.CompletionMode == batchv1.NonIndexedCompletion {
		for name, v := range map[string]*int32{"backoffLimitPerIndex": s.BackoffLimitPerIndex, "maxFailedIndexes": s.MaxFailedIndexes} {
			if v != nil {
				p.invalid(path.Child(name), *v, "requires indexed completion mode")
			}
		}
	}
}

func (p *problems) indexedJob(path *field.Path, s *batchv1.JobSpec) {
	completions, parallelism, failed := replicasOf(s.Completions), replicasOf(s.Parallelism), replicasOf(s.MaxFailedIndexes)
	if s.Completions == nil {
		p.required(path.Child("completions"), "when completion mode is Indexed")
	}
	if parallelism > manyCompletions {
		p.invalid(path.Child("parallelism"), parallelism, fmt.Sprintf("must be less than or equal to %d when completion mode is Indexed", manyCompletions))
	}
	if s.Completions != nil && s.MaxFailedIndexes != nil && failed > completions {
		p.invalid(path.Child("maxFailedIndexes"), failed, "must be less than or equal to completions")
	}
	if failed > manyCompletions {
		p.invalid(path.Child("maxFailedIndexes"), failed, fmt.Sprintf("must be less than or equal to %d", manyCompletions))
	}
	if completions <= manyCompletions || s.BackoffLimitPerIndex == nil {
		return
	}
	if s.MaxFailedIndexes == nil {
		p.required(path.Child("maxFailedIndexes"), fmt.Sprintf("must be specified when completions is above %d", manyCompletions))
	}
	tooMany := fmt.Sprintf("must be less than or equal to %d when completions are above %d and used with backoff limit per index", manyParallel, manyCompletions)
	if parallelism > manyParallel {
		p.invalid(path.Child("parallelism"), parallelism, tooMany)
	}
	if failed > manyParallel {
		p.invalid(path.Child("maxFailedIndexes"), failed, tooMany)
	}
}

func (p *problems) jobRestartPolicy(path *field.Path, s *batchv1.JobSpec) {
	onFailure, never := corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever
	switch policy := s.Template.Spec.RestartPolicy; {
	case policy == corev1.RestartPolicyAlways || policy == "":
		p.required(path, fmt.Sprintf("valid values: %q, %q", onFailure, never))
	case policy != onFailure && policy != never:
		p.add(field.NotSupported(path, policy, []corev1.RestartPolicy{onFailure, never}))
	case s.PodFailurePolicy != nil && policy != never:
		p.invalid(path, policy, fmt.Sprintf("only %q is supported when podFailurePolicy is specified", never))
	}
}

// validateJobUpdate checks the spec again, as the real server does: its errors
// are told twice.
func validateJobUpdate(j, old *batchv1.Job) field.ErrorList {
	p, s, was, path := &problems{}, &j.Spec, &old.Spec, field.NewPath("spec")
	p.ownedJobSpec(path, s)
	p.completionsKept(path, s, was)
	p.immutable(path.Child("selector"), s.Selector, was.Selector)
	p.jobTemplateKept(path.Child("template"), j, old)
	p.immutable(path.Child("completionMode"), s.CompletionMode, was.CompletionMode)
	p.immutable(path.Child("podFailurePolicy"), s.PodFailurePolicy, was.PodFailurePolicy)
	p.immutable(path.Child("backoffLimitPerIndex"), s.BackoffLimitPerIndex, was.BackoffLimitPerIndex)
	p.immutable(path.Child("managedBy"), s.ManagedBy, was.ManagedBy)
	p.immutable(path.Child("successPolicy"), s.SuccessPolicy, was.SuccessPolicy)
	return p.list
}

// completionsKept allows indexed jobs to be scaled, by completions and
// parallelism together.
func (p *problems) completionsKept(path *field.Path, s, was *batchv1.JobSpec) {
	if !jobIndexed(s) {
		p.immutable(path.Child("completions"), s.Completions, was.Completions)
		return
	}
	if s.Completions == nil || equality.Semantic.DeepEqual(s.Completions, was.Completions) {
		return
	}
	if *s.Completions != replicasOf(s.Parallelism) {
		p.invalid(path.Child("completions"), *s.Completions, fmt.Sprintf("can only be modified in tandem with %s", path.Root().Child("parallelism")))
	}
}

// jobTemplateKept allows a job that is suspended and has no pods to change where
// its pods run and what they use, and nothing else.
func (p *problems) jobTemplateKept(path *field.Path, j, old *batchv1.Job) {
	suspended := old.Spec.Suspend != nil && *old.Spec.Suspend
	idle := old.Status.Active == 0 && (old.Status.StartTime == nil || jobIs(old, batchv1.JobSuspended))
	now, before := &j.Spec.Template, &old.Spec.Template
	if !suspended || !idle {
		p.immutable(path, now, before)
		return
	}
	before = before.DeepCopy()
	adoptPlacement(before, now)
	adoptResources(before.Spec.Containers, now.Spec.Containers)
	adoptResources(before.Spec.InitContainers, now.Spec.InitContainers)
	p.immutable(path.Child("spec"), now.Spec, before.Spec)
}

// adoptPlacement carries the scheduling directives of a template into another.
func adoptPlacement(to, from *corev1.PodTemplateSpec) {
	switch a, was := from.Spec.Affinity, to.Spec.Affinity; {
	case a == nil && was != nil:
		was.NodeAffinity = nil
		if *was == (corev1.Affinity{}) {
			to.Spec.Affinity = nil
		}
	case a != nil && was == nil:
		to.Spec.Affinity = &corev1.Affinity{NodeAffinity: a.NodeAffinity}
	case a != nil:
		was.NodeAffinity = a.NodeAffinity
	}
	to.Spec.NodeSelector, to.Spec.Tolerations = from.Spec.NodeSelector, from.Spec.Tolerations
	to.Annotations, to.Labels = from.Annotations, from.Labels
	to.Spec.SchedulingGates = from.Spec.SchedulingGates
}

// adoptResources carries the resources of containers into others of the same
// names.
func adoptResources(to, from []corev1.Container) {
	if len(to) != len(from) {
		return
	}
	for i := range to {
		if to[i].Name == from[i].Name {
			to[i].Resources = from[i].Resources
		}
	}
}
