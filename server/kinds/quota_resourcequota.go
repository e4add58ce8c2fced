package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func resourceQuotaKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("ResourceQuota"),
		Resource: "resourcequotas", Singular: "resourcequota",
		ShortNames: []string{"quota"}, Namespaced: true,
		New: newOf[corev1.ResourceQuota], NewList: newOf[corev1.ResourceQuotaList],
		HasStatus: true, DeleteReturnsObject: true,
		Default: each(func(q *corev1.ResourceQuota) {
			roundUp(q.Spec.Hard)
			roundUp(q.Status.Hard)
			roundUp(q.Status.Used)
		}),
		Validate:       check(validateQuota),
		ValidateUpdate: checkPair(validateQuotaUpdate),
		ValidateStatus: checkPair(func(q, _ *corev1.ResourceQuota) field.ErrorList {
			p := &problems{}
			p.quotaList(field.NewPath("status", "hard"), q.Status.Hard)
			p.quotaList(field.NewPath("status", "used"), q.Status.Used)
			return p.list
		}),
		Warnings: warn(quotaWarnings),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(), column("Request", "Used and allowed amounts of what pods request, and of objects."),
			column("Limit", "Used and allowed amounts of what pods are limited to."), ageColumn(),
		},
		Cells: cells(quotaCells),
	}
}

var (
	quotaPods    = []corev1.ResourceName{corev1.ResourcePods}
	quotaCompute = []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceLimitsCPU,
		corev1.ResourceLimitsMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	}
	quotaClaims = []corev1.ResourceName{corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage}
)

// quotaScopes are the scopes, with the resources that each can be about.
var quotaScopes = map[corev1.ResourceQuotaScope][]corev1.ResourceName{
	corev1.ResourceQuotaScopeTerminating:               quotaCompute,
	corev1.ResourceQuotaScopeNotTerminating:            quotaCompute,
	corev1.ResourceQuotaScopeBestEffort:                quotaPods,
	corev1.ResourceQuotaScopeNotBestEffort:             quotaCompute,
	corev1.ResourceQuotaScopePriorityClass:             quotaCompute,
	corev1.ResourceQuotaScopeCrossNamespacePodAffinity: quotaCompute,
	corev1.ResourceQuotaScopeVolumeAttributesClass:     quotaClaims,
}

// isQuotaResource reports whether quota counts a resource of that name.
func isQuotaResource(n corev1.ResourceName) bool {
	return slices.Contains(standardResources, n) && n != corev1.ResourceStorage ||
		isHugePage(n) || strings.HasPrefix(string(n), corev1.ResourceRequestsHugePagesPrefix)
}

func validateQuota(q *corev1.ResourceQuota) field.ErrorList {
	p, path := &problems{}, field.NewPath("spec")
	p.quotaList(path.Child("hard"), q.Spec.Hard)
	p.quotaScopes(path.Child("scopes"), &q.Spec)
	if q.Spec.ScopeSelector != nil {
		p.scopeSelector(path.Child("scopeSelector", "matchExpressions"), &q.Spec)
	}
	return p.list
}

func (p *problems) quotaList(path *field.Path, list corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at := path.Key(string(name))
		c := &podChecker{}
		c.checkResourceName(name, at)
		p.add(c.list...)
		if !strings.Contains(string(name), "/") && !isQuotaResource(name) {
			p.invalid(at, name, "must be a standard resource for quota")
		}
		p.add(validateQuantity(name, list[name], at)...)
	}
}

func (p *problems) quotaScopes(path *field.Path, s *corev1.ResourceQuotaSpec) {
	for _, scope := range s.Scopes {
		if _, known := quotaScopes[scope]; !known {
			p.invalid(path, s.Scopes, "unsupported scope")
		}
		for range outOfScope(scope, s.Hard) {
			p.invalid(path, s.Scopes, "unsupported scope applied to resource")
		}
	}
	p.scopesAgree(path, s, s.Scopes)
}

// outOfScope are the resources that a scope cannot be about.
func outOfScope(scope corev1.ResourceQuotaScope, hard corev1.ResourceList) []corev1.ResourceName {
	var out []corev1.ResourceName
	allowed, known := quotaScopes[scope]
	for name := range hard {
		if known && isQuotaResource(name) && !slices.Contains(allowed, name) {
			out = append(out, name)
		}
	}
	return out
}

func (p *problems) scopesAgree(path *field.Path, s *corev1.ResourceQuotaSpec, scopes []corev1.ResourceQuotaScope) {
	for _, pair := range [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]) {
			p.invalid(path, s.Scopes, "conflicting scopes")
		}
	}
}

func (p *problems) scopeSelector(path *field.Path, s *corev1.ResourceQuotaSpec) {
	var scopes []corev1.ResourceQuotaScope
	for i := range s.ScopeSelector.MatchExpressions {
		r := &s.ScopeSelector.MatchExpressions[i]
		if _, known := quotaScopes[r.ScopeName]; !known {
			p.invalid(path.Child("scopeName"), r.ScopeName, "unsupported scope")
		}
		for range outOfScope(r.ScopeName, s.Hard) {
			p.invalid(path, s.ScopeSelector, "unsupported scope applied to resource")
		}
		p.scopeOperator(path, r)
		scopes = append(scopes, r.ScopeName)
	}
	p.scopesAgree(path, s, scopes)
}

func (p *problems) scopeOperator(path *field.Path, r *corev1.ScopedResourceSelectorRequirement) {
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeTerminating,
		corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		if r.Operator != corev1.ScopeSelectorOpExists {
			p.invalid(path.Child("operator"), r.Operator, "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity")
		}
	}
	switch r.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		if len(r.Values) == 0 {
			p.required(path.Child("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			p.invalid(path.Child("values"), r.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
		}
	default:
		p.invalid(path.Child("operator"), r.Operator, "not a valid selector operator")
	}
}

func validateQuotaUpdate(q, old *corev1.ResourceQuota) field.ErrorList {
	p := &problems{}
	set := func(scopes []corev1.ResourceQuotaScope) []corev1.ResourceQuotaScope {
		return slices.Compact(slices.Sorted(slices.Values(scopes)))
	}
	if !slices.Equal(set(q.Spec.Scopes), set(old.Spec.Scopes)) {
		p.invalid(field.NewPath("spec", "scopes"), q.Spec.Scopes, "field is immutable")
	}
	return p.list
}

// quotaWarnings tells of a new quota that allows to request more than limits.
func quotaWarnings(q, old *corev1.ResourceQuota) []string {
	if old != nil {
		return nil
	}
	var out []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		request, limit := "requests."+name, "limits."+name
		wanted, ok := q.Spec.Hard[request]
		if !ok && name != corev1.ResourceEphemeralStorage {
			request = name
			wanted, ok = q.Spec.Hard[name]
		}
		if most, limited := q.Spec.Hard[limit]; ok && limited && wanted.Cmp(most) > 0 {
			out = append(out, fmt.Sprintf("ResourceQuota %s (%s) should be less than %s (%s)", request, wanted.String(), limit, most.String()))
		}
	}
	return out
}

func quotaCells(q *corev1.ResourceQuota, now metav1.Time) []any {
	var requests, limits []string
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		text := fmt.Sprintf("%s: %s/%s", name, quantityIn(q.Status.Used, name), quantityIn(q.Status.Hard, name))
		if strings.HasPrefix(string(name), "limits.") {
			limits = append(limits, text)
		} else {
			requests = append(requests, text)
		}
	}
	return []any{q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "), Age(q.CreationTimestamp, now)}
}

func quantityIn(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	q := list[name]
	return &q
}
