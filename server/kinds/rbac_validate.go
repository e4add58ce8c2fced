package kinds

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateRole(r *rbacv1.Role) field.ErrorList { return validateRBACRules(r.Rules, true) }

func validateClusterRole(r *rbacv1.ClusterRole) field.ErrorList {
	p := problems{list: validateRBACRules(r.Rules, false)}
	if r.AggregationRule == nil {
		return p.list
	}
	path, selectors := field.NewPath("aggregationRule", "clusterRoleSelectors"), r.AggregationRule.ClusterRoleSelectors
	if len(selectors) == 0 {
		p.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
	}
	for i := range selectors {
		validateSelector(&p, &selectors[i], path.Index(i))
		if s, err := metav1.LabelSelectorAsSelector(&selectors[i]); err != nil {
			p.invalid(path.Index(i), s, "invalid label selector.")
		}
	}
	return p.list
}

func validateRBACRules(rules []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var p problems
	for i := range rules {
		validateRBACRule(&p, &rules[i], namespaced, field.NewPath("rules").Index(i))
	}
	return p.list
}

func validateRBACRule(p *problems, rule *rbacv1.PolicyRule, namespaced bool, path *field.Path) {
	if len(rule.Verbs) == 0 {
		p.required(path.Child("verbs"), "verbs must contain at least one value")
	}
	if len(rule.NonResourceURLs) > 0 {
		urls := path.Child("nonResourceURLs")
		if namespaced {
			p.invalid(urls, rule.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs")
		}
		if len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0 {
			p.invalid(urls, rule.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs")
		}
		return
	}
	if len(rule.APIGroups) == 0 {
		p.required(path.Child("apiGroups"), "resource rules must supply at least one api group")
	}
	if len(rule.Resources) == 0 {
		p.required(path.Child("resources"), "resource rules must supply at least one resource")
	}
}

func validateRoleBinding(b *rbacv1.RoleBinding) field.ErrorList {
	var p problems
	validateRoleRef(&p, b.RoleRef, "Role", "ClusterRole")
	for i := range b.Subjects {
		validateRBACSubject(&p, &b.Subjects[i], true, field.NewPath("subjects").Index(i))
	}
	return p.list
}

func validateClusterRoleBinding(b *rbacv1.ClusterRoleBinding) field.ErrorList {
	var p problems
	validateRoleRef(&p, b.RoleRef, "ClusterRole")
	for i := range b.Subjects {
		validateRBACSubject(&p, &b.Subjects[i], false, field.NewPath("subjects").Index(i))
	}
	return p.list
}

func validateRoleBindingUpdate(obj, old *rbacv1.RoleBinding) field.ErrorList {
	return validateRoleRefUpdate(obj.RoleRef, old.RoleRef)
}

func validateClusterRoleBindingUpdate(obj, old *rbacv1.ClusterRoleBinding) field.ErrorList {
	return validateRoleRefUpdate(obj.RoleRef, old.RoleRef)
}

func validateRoleRef(p *problems, ref rbacv1.RoleRef, roles ...string) {
	path := field.NewPath("roleRef")
	oneOf(p, path.Child("apiGroup"), ref.APIGroup, rbacv1.GroupName)
	oneOf(p, path.Child("kind"), ref.Kind, roles...)
	p.named(path.Child("name"), ref.Name, content.IsPathSegmentName)
}

func validateRoleRefUpdate(ref, old rbacv1.RoleRef) field.ErrorList {
	if ref == old {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("roleRef"), shownRoleRef(ref), "cannot change roleRef")}
}

func validateRBACSubject(p *problems, s *rbacv1.Subject, namespaced bool, path *field.Path) {
	p.nonEmpty(path.Child("name"), s.Name)
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		if s.Name != "" {
			p.invalid(path.Child("name"), s.Name, validation.ValidateServiceAccountName(s.Name, false)...)
		}
		oneOf(p, path.Child("apiGroup"), s.APIGroup, "")
		if !namespaced {
			p.nonEmpty(path.Child("namespace"), s.Namespace)
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		oneOf(p, path.Child("apiGroup"), s.APIGroup, rbacv1.GroupName)
	default:
		oneOf(p, path.Child("kind"), s.Kind, rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind)
	}
}
