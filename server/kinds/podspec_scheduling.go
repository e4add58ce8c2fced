package kinds

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkScheduling checks what says where a pod may run.
func (c *podChecker) checkScheduling() {
	c.add(metavalidation.ValidateLabels(c.spec.NodeSelector, c.path.Child("nodeSelector"))...)
	c.add(validateTolerations(c.spec.Tolerations, c.path.Child("tolerations"))...)
	gates := seen{}
	for i, g := range c.spec.SchedulingGates {
		path := c.path.Child("schedulingGates").Index(i)
		c.invalid(path, g.Name, validation.IsQualifiedName(g.Name)...)
		if gates.again(g.Name) {
			c.duplicate(path, g.Name)
		}
	}
	c.checkSpread()
	if a := c.spec.Affinity; a != nil {
		path := c.path.Child("affinity")
		c.checkNodeAffinity(a.NodeAffinity, path.Child("nodeAffinity"))
		if p := a.PodAffinity; p != nil {
			c.checkPodAffinity(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))
		}
		if p := a.PodAntiAffinity; p != nil {
			c.checkPodAffinity(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))
		}
	}
}

// validateTolerations checks the tolerations of a pod.
func validateTolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var p problems
	for i, t := range tolerations {
		path := path.Index(i)
		if t.Key != "" {
			p.add(metavalidation.ValidateLabelName(t.Key, path.Child("key"))...)
		} else if t.Operator != corev1.TolerationOpExists {
			p.invalid(path.Child("operator"), t.Operator,
				"operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			p.invalid(path.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
		}
		p.checkTolerated(t, path.Child("operator"))
		if t.Effect != "" {
			p.checkEffect(t.Effect, path.Child("effect"))
		}
	}
	return p.list
}

func (p *problems) checkTolerated(t corev1.Toleration, path *field.Path) {
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		if faults := validation.IsValidLabelValue(t.Value); len(faults) > 0 {
			p.invalid(path, t.Value, strings.Join(faults, ";"))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			p.invalid(path, t.Value, "value must be empty when `operator` is 'Exists'")
		}
	case corev1.TolerationOpLt, corev1.TolerationOpGt:
		p.add(field.NotSupported(path, t.Operator, []corev1.TolerationOperator{
			corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt}))
	default:
		p.add(field.NotSupported(path, t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
}

func (p *problems) checkEffect(effect corev1.TaintEffect, path *field.Path) {
	chosen(p, path, effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
}

func (c *podChecker) checkNodeAffinity(a *corev1.NodeAffinity, path *field.Path) {
	if a == nil {
		return
	}
	if required := a.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		terms := path.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		if len(required.NodeSelectorTerms) == 0 {
			c.required(terms, "must have at least one node selector term")
		}
		for i, t := range required.NodeSelectorTerms {
			c.checkNodeTerm(t, terms.Index(i), true)
		}
	}
	for i, t := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		path := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		c.checkWeight(t.Weight, path)
		c.checkNodeTerm(t.Preference, path.Child("preference"), false)
	}
}

func (c *podChecker) checkWeight(weight int32, path *field.Path) {
	if weight <= 0 || weight > 100 {
		c.invalid(path.Child("weight"), weight, "must be in the range 1-100")
	}
}

// checkNodeTerm checks the values of labels only if the term is required.
func (c *podChecker) checkNodeTerm(t corev1.NodeSelectorTerm, path *field.Path, values bool) {
	for i, r := range t.MatchExpressions {
		c.checkNodeRequirement(r, path.Child("matchExpressions").Index(i), values)
	}
	for i, r := range t.MatchFields {
		c.checkNodeField(r, path.Child("matchFields").Index(i))
	}
}

func (c *podChecker) checkNodeRequirement(r corev1.NodeSelectorRequirement, path *field.Path, values bool) {
	at := path.Child("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			c.required(at, "must be specified when `operator` is 'In' or 'NotIn'")
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			c.forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			c.required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'")
		}
	default:
		c.invalid(path.Child("operator"), r.Operator, "not a valid selector operator")
	}
	c.add(metavalidation.ValidateLabelName(r.Key, path.Child("key"))...)
	for i, v := range r.Values {
		if values {
			c.invalid(at.Index(i), v, validation.IsValidLabelValue(v)...)
		}
	}
}

// checkNodeField checks a requirement on the only field of nodes there is.
func (c *podChecker) checkNodeField(r corev1.NodeSelectorRequirement, path *field.Path) {
	if r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
		c.invalid(path.Child("operator"), r.Operator, "not a valid selector operator")
	} else if len(r.Values) != 1 {
		c.required(path.Child("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
	}
	if r.Key != metav1.ObjectNameField {
		c.invalid(path.Child("key"), r.Key, "not a valid field selector key")
		return
	}
	for i, v := range r.Values {
		c.invalid(path.Child("values").Index(i), v, apivalidation.NameIsDNSSubdomain(v, false)...)
	}
}

func (c *podChecker) checkPodAffinity(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, path *field.Path) {
	for i, t := range required {
		c.checkPodTerm(t, path.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i))
	}
	for i, t := range preferred {
		path := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		c.checkWeight(t.Weight, path)
		c.checkPodTerm(t.PodAffinityTerm, path.Child("podAffinityTerm"))
	}
}

func (c *podChecker) checkPodTerm(t corev1.PodAffinityTerm, path *field.Path) {
	c.checkSelector(t.LabelSelector, path.Child("labelSelector"))
	c.checkSelector(t.NamespaceSelector, path.Child("namespaceSelector"))
	for _, ns := range t.Namespaces {
		c.invalid(path.Child("namespace"), ns, apivalidation.NameIsDNSLabel(ns, false)...)
	}
	c.checkLabelKeys(t.MatchLabelKeys, t.MismatchLabelKeys, t.LabelSelector, path)
	if t.TopologyKey == "" {
		c.required(path.Child("topologyKey"), "can not be empty")
	}
	c.add(metavalidation.ValidateLabelName(t.TopologyKey, path.Child("topologyKey"))...)
}

func (c *podChecker) checkSelector(s *metav1.LabelSelector, path *field.Path) {
	c.add(metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, path)...)
}

// checkLabelKeys checks keys whose values come from the pod itself. By now they
// have been added to the selector, so that a key named there before is in it
// twice.
func (c *podChecker) checkLabelKeys(match, mismatch []string, selector *metav1.LabelSelector, path *field.Path) {
	for _, keys := range []struct {
		name string
		list []string
	}{{"matchLabelKeys", match}, {"mismatchLabelKeys", mismatch}} {
		at := path.Child(keys.name)
		if len(keys.list) > 0 && selector == nil {
			c.forbidden(at, "must not be specified when labelSelector is not set")
			continue
		}
		for i, k := range keys.list {
			c.add(metavalidation.ValidateLabelName(k, at.Index(i))...)
		}
	}
	if selector != nil {
		named := seen{}
		for k := range selector.MatchLabels {
			named[k] = true
		}
		for _, e := range selector.MatchExpressions {
			if i := slices.Index(match, e.Key); named.again(e.Key) && i >= 0 {
				c.invalid(path.Index(i), e.Key, "exists in both matchLabelKeys and labelSelector")
			}
		}
	}
	for i, k := range match {
		if slices.Contains(mismatch, k) {
			c.invalid(path.Child("matchLabelKeys").Index(i), k, "exists in both matchLabelKeys and mismatchLabelKeys")
		}
	}
}

func (c *podChecker) checkSpread() {
	all := c.spec.TopologySpreadConstraints
	for i, s := range all {
		path := c.path.Child("topologySpreadConstraints").Index(i)
		c.positive(path.Child("maxSkew"), s.MaxSkew)
		if s.TopologyKey == "" {
			c.required(path.Child("topologyKey"), "can not be empty")
		}
		oneOf(&c.problems, path.Child("whenUnsatisfiable"), s.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)
		if slices.ContainsFunc(all[i+1:], func(o corev1.TopologySpreadConstraint) bool {
			return o.TopologyKey == s.TopologyKey && o.WhenUnsatisfiable == s.WhenUnsatisfiable
		}) {
			c.duplicate(path.Child("{topologyKey, whenUnsatisfiable}"), fmt.Sprintf("{%v, %v}", s.TopologyKey, s.WhenUnsatisfiable))
		}
		c.checkMinDomains(s, path.Child("minDomains"))
		for _, p := range []struct {
			name   string
			policy *corev1.NodeInclusionPolicy
		}{{"nodeAffinityPolicy", s.NodeAffinityPolicy}, {"nodeTaintsPolicy", s.NodeTaintsPolicy}} {
			if p.policy != nil {
				oneOf(&c.problems, path.Child(p.name), *p.policy, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
			}
		}
		c.checkLabelKeys(s.MatchLabelKeys, nil, s.LabelSelector, path)
		c.checkSelector(s.LabelSelector, path.Child("labelSelector"))
	}
}

func (c *podChecker) positive(path *field.Path, n int32) {
	if n <= 0 {
		c.invalid(path, n, "must be greater than zero")
	}
}

func (c *podChecker) checkMinDomains(s corev1.TopologySpreadConstraint, path *field.Path) {
	if s.MinDomains == nil {
		return
	}
	c.positive(path, *s.MinDomains)
	if s.WhenUnsatisfiable != corev1.DoNotSchedule {
		c.invalid(path, s.MinDomains, fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s", corev1.DoNotSchedule, s.WhenUnsatisfiable))
	}
}
