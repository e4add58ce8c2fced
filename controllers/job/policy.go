package job

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// ruling is what a pod failure policy says of a pod that failed.
type ruling struct {
	action batchv1.PodFailurePolicyAction
	why    string // if the job is to fail
}

// counts reports whether the failure is one.
func (r ruling) counts() bool { return r.action != batchv1.PodFailurePolicyActionIgnore }

// rule is the ruling of the first rule that fits; without one, failures count.
func rule(job *batchv1.Job, p *corev1.Pod) ruling {
	if job.Spec.PodFailurePolicy == nil {
		return ruling{action: batchv1.PodFailurePolicyActionCount}
	}
	for i, r := range job.Spec.PodFailurePolicy.Rules {
		if why, fits := fits(r, p); fits {
			return ruling{r.Action, fmt.Sprintf("%s matching %s rule at index %d", why, r.Action, i)}
		}
	}
	return ruling{action: batchv1.PodFailurePolicyActionCount}
}

// fits says of a rule whether it is about a pod, and what of the pod.
func fits(r batchv1.PodFailurePolicyRule, p *corev1.Pod) (string, bool) {
	if r.OnExitCodes != nil {
		for _, c := range slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses) {
			if exited(r.OnExitCodes, c) {
				return fmt.Sprintf("Container %s for pod %s/%s failed with exit code %d", c.Name, p.Namespace, p.Name, c.State.Terminated.ExitCode), true
			}
		}
		return "", false
	}
	for _, c := range p.Status.Conditions {
		for _, pattern := range r.OnPodConditions {
			if c.Type == pattern.Type && c.Status == pattern.Status {
				return fmt.Sprintf("Pod %s/%s has condition %s", p.Namespace, p.Name, c.Type), true
			}
		}
	}
	return "", false
}

func exited(r *batchv1.PodFailurePolicyOnExitCodesRequirement, c corev1.ContainerStatus) bool {
	if c.State.Terminated == nil || c.State.Terminated.ExitCode == 0 || r.ContainerName != nil && *r.ContainerName != c.Name {
		return false
	}
	in := slices.Contains(r.Values, c.State.Terminated.ExitCode)
	switch r.Operator {
	case batchv1.PodFailurePolicyOnExitCodesOpIn:
		return in
	case batchv1.PodFailurePolicyOnExitCodesOpNotIn:
		return !in
	}
	return false
}

// satisfied says which rule of a success policy is met by the indexes that have
// succeeded.
func satisfied(policy *batchv1.SuccessPolicy, done indexes, completions int) (string, bool) {
	if policy == nil || len(done) == 0 {
		return "", false
	}
	for i, r := range policy.Rules {
		if meets(r, done, completions) {
			return fmt.Sprintf("Matched rules at index %d", i), true
		}
	}
	return "", false
}

func meets(r batchv1.SuccessPolicyRule, done indexes, completions int) bool {
	if r.SucceededIndexes == nil {
		return r.SucceededCount != nil && done.count() >= int(*r.SucceededCount)
	}
	wanted := parseIndexes(*r.SucceededIndexes, completions)
	have := wanted.common(done)
	return len(wanted) > 0 && (have == wanted.count() || r.SucceededCount != nil && have >= int(*r.SucceededCount))
}
