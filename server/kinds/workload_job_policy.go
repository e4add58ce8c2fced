package kinds

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits on the policies of a job.
const (
	maxPolicyRules      = 20
	maxPolicyExitCodes  = 255
	maxPolicyConditions = 20
	maxSucceededIndexes = 64 * 1024
)

var (
	failureActions = []batchv1.PodFailurePolicyAction{
		batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex,
		batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore,
	}
	exitCodeOperators = []batchv1.PodFailurePolicyOnExitCodesOperator{
		batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn,
	}
	conditionStatuses = []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
)

func (p *problems) jobPolicies(path *field.Path, s *batchv1.JobSpec) {
	if s.PodFailurePolicy != nil {
		p.failurePolicy(path.Child("podFailurePolicy", "rules"), s)
	}
	if s.SuccessPolicy != nil {
		if jobIndexed(s) {
			p.successPolicy(path.Child("successPolicy", "rules"), s)
		} else {
			p.invalid(path.Child("successPolicy"), *s.SuccessPolicy, "requires indexed completion mode")
		}
	}
	replacement := path.Child("podReplacementPolicy")
	switch r := s.PodReplacementPolicy; {
	case r == nil:
	case s.PodFailurePolicy != nil:
		oneOf(p, replacement, *r, batchv1.Failed)
	default:
		oneOf(p, replacement, *r, batchv1.Failed, batchv1.TerminatingOrFailed)
	}
}

// choice is oneOf for a value whose absence is told with the list of choices.
func choice[T ~string](p *problems, path *field.Path, value T, allowed []T) {
	if value == "" {
		p.required(path, fmt.Sprintf("valid values: %q", allowed))
		return
	}
	oneOf(p, path, value, allowed...)
}

func (p *problems) failurePolicy(path *field.Path, s *batchv1.JobSpec) {
	rules := s.PodFailurePolicy.Rules
	if len(rules) > maxPolicyRules {
		p.add(field.TooMany(path, len(rules), maxPolicyRules))
	}
	names := map[string]bool{}
	for _, c := range slices.Concat(s.Template.Spec.Containers, s.Template.Spec.InitContainers) {
		names[c.Name] = true
	}
	for i := range rules {
		p.failureRule(path.Index(i), &rules[i], s.BackoffLimitPerIndex != nil, names)
	}
}

func (p *problems) failureRule(path *field.Path, r *batchv1.PodFailurePolicyRule, perIndex bool, containers map[string]bool) {
	choice(p, path.Child("action"), r.Action, failureActions)
	if r.Action == batchv1.PodFailurePolicyActionFailIndex && !perIndex {
		p.invalid(path.Child("action"), r.Action, "requires the backoffLimitPerIndex to be set")
	}
	if r.OnExitCodes != nil {
		p.exitCodes(path.Child("onExitCodes"), r.OnExitCodes, containers)
	}
	conditions := path.Child("onPodConditions")
	if len(r.OnPodConditions) > maxPolicyConditions {
		p.add(field.TooMany(conditions, len(r.OnPodConditions), maxPolicyConditions))
	}
	for i, c := range r.OnPodConditions {
		p.invalid(conditions.Index(i).Child("type"), string(c.Type), validation.IsQualifiedName(string(c.Type))...)
		choice(p, conditions.Index(i).Child("status"), c.Status, conditionStatuses)
	}
	switch codes, conds := r.OnExitCodes != nil, len(r.OnPodConditions) > 0; {
	case codes && conds:
		p.invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported")
	case !codes && !conds:
		p.invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required")
	}
}

func (p *problems) exitCodes(path *field.Path, r *batchv1.PodFailurePolicyOnExitCodesRequirement, containers map[string]bool) {
	choice(p, path.Child("operator"), r.Operator, exitCodeOperators)
	if r.ContainerName != nil && !containers[*r.ContainerName] {
		p.invalid(path.Child("containerName"), *r.ContainerName, "must be one of the container or initContainer names in the pod template")
	}
	values := path.Child("values")
	if len(r.Values) == 0 {
		p.invalid(values, r.Values, "at least one value is required")
	} else if len(r.Values) > maxPolicyExitCodes {
		p.add(field.TooMany(values, len(r.Values), maxPolicyExitCodes))
	}
	before := map[int32]bool{}
	for i, v := range r.Values {
		if v == 0 && r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn {
			p.invalid(values.Index(i), v, "must not be 0 for the In operator")
		}
		if before[v] {
			p.duplicate(values.Index(i), v)
		}
		before[v] = true
	}
	if !slices.IsSorted(r.Values) {
		p.invalid(values, r.Values, "must be ordered")
	}
}

func (p *problems) successPolicy(path *field.Path, s *batchv1.JobSpec) {
	rules := s.SuccessPolicy.Rules
	if len(rules) == 0 {
		p.required(path, "at least one rules must be specified when the successPolicy is specified")
	}
	if len(rules) > maxPolicyRules {
		p.add(field.TooMany(path, len(rules), maxPolicyRules))
	}
	for i := range rules {
		p.successRule(path.Index(i), &rules[i], replicasOf(s.Completions))
	}
}

func (p *problems) successRule(path *field.Path, r *batchv1.SuccessPolicyRule, completions int32) {
	if r.SucceededCount == nil && r.SucceededIndexes == nil {
		p.required(path, "at least one of succeededCount or succeededIndexes must be specified")
	}
	var total int32
	if r.SucceededIndexes != nil {
		at := path.Child("succeededIndexes")
		if len(*r.SucceededIndexes) > maxSucceededIndexes {
			p.add(field.TooLong(at, "", maxSucceededIndexes))
		}
		var err error
		if total, err = countIndexes(*r.SucceededIndexes, completions); err != nil {
			p.invalid(at, *r.SucceededIndexes, fmt.Sprintf("error parsing succeededIndexes: %s", err))
		}
	}
	if r.SucceededCount == nil {
		return
	}
	at, n := path.Child("succeededCount"), *r.SucceededCount
	p.nonNegative(at, int64(n))
	if n > completions {
		p.invalid(at, n, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions))
	}
	if r.SucceededIndexes != nil && n > total {
		p.invalid(at, n, fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", total))
	}
}

// indexRange is a run of completion indexes, both ends included.
type indexRange struct{ first, last int32 }

// parseIndexes reads a list like "1,3-5": growing and below completions. The
// ranges before an error are returned with it.
func parseIndexes(text string, completions int32) ([]indexRange, error) {
	if text == "" {
		return nil, nil
	}
	var out []indexRange
	for part := range strings.SplitSeq(text, ",") {
		r, err := parseIndexRange(part, completions)
		if err != nil {
			return out, err
		}
		if len(out) > 0 && out[len(out)-1].last >= r.first {
			return out, fmt.Errorf("non-increasing order, previous: %d, current: %d", out[len(out)-1].last, r.first)
		}
		out = append(out, r)
	}
	return out, nil
}

func parseIndexRange(text string, completions int32) (indexRange, error) {
	ends := strings.Split(text, "-")
	if len(ends) > 2 {
		return indexRange{}, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", text)
	}
	var at [2]int32
	for i, end := range ends {
		n, err := strconv.Atoi(end)
		if err != nil {
			return indexRange{}, fmt.Errorf("cannot convert string to integer for index: %q", end)
		}
		if n >= int(completions) {
			return indexRange{}, fmt.Errorf("too large index: %q", end)
		}
		at[i] = int32(n)
	}
	if len(ends) == 1 {
		at[1] = at[0]
	} else if at[0] >= at[1] {
		return indexRange{}, fmt.Errorf("non-increasing order, previous: %d, current: %d", at[0], at[1])
	}
	return indexRange{at[0], at[1]}, nil
}

func countIndexes(text string, completions int32) (int32, error) {
	ranges, err := parseIndexes(text, completions)
	if err != nil {
		return 0, err
	}
	var total int32
	for _, r := range ranges {
		total += r.last - r.first + 1
	}
	return total, nil
}

// overlap is the first index that is in both lists, which are sorted.
func overlap(a, b []indexRange) (int32, bool) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if a[i].first <= b[j].last && b[j].first <= a[i].last {
			return max(a[i].first, b[j].first), true
		}
		if a[i].first <= b[j].first {
			i++
		} else {
			j++
		}
	}
	return 0, false
}
