package bootstrap

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// aggregate fills in the roles whose rules come from others, as the controller
// of a cluster does: it goes over them until nothing changes, since one may be
// made of another. Their order of rules is that of the parts' names.
func aggregate(roles []*rbacv1.ClusterRole) {
	byName := slices.SortedFunc(slices.Values(roles), func(a, b *rbacv1.ClusterRole) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for changed := true; changed; {
		changed = false
		for _, r := range byName {
			if r.AggregationRule == nil {
				continue
			}
			sum := sumOf(r, byName)
			changed = changed || !slices.EqualFunc(r.Rules, sum, sameRule)
			r.Rules = sum
		}
	}
	unshare(roles)
}

// unshare gives aggregated roles rules of their own.
func unshare(roles []*rbacv1.ClusterRole) {
	for _, r := range roles {
		if r.AggregationRule == nil {
			continue
		}
		for i := range r.Rules {
			r.Rules[i] = *r.Rules[i].DeepCopy()
		}
	}
}

// sumOf returns the rules of all roles that one selects, each once.
func sumOf(whole *rbacv1.ClusterRole, roles []*rbacv1.ClusterRole) []rbacv1.PolicyRule {
	var sum []rbacv1.PolicyRule
	for i := range whole.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&whole.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			panic("bootstrap: the selector of " + whole.Name + " is not one: " + err.Error())
		}
		for _, part := range roles {
			if part != whole && selector.Matches(labels.Set(part.Labels)) {
				sum = appendNew(sum, part.Rules)
			}
		}
	}
	return sum
}

func appendNew(sum, more []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for i := range more {
		known := func(r rbacv1.PolicyRule) bool { return sameRule(r, more[i]) }
		if !slices.ContainsFunc(sum, known) {
			sum = append(sum, more[i])
		}
	}
	return sum
}

func sameRule(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.APIGroups, b.APIGroups) &&
		slices.Equal(a.Resources, b.Resources) && slices.Equal(a.ResourceNames, b.ResourceNames) &&
		slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}
