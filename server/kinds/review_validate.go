package kinds

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateAccessReview(r *authorizationv1.SubjectAccessReview) field.ErrorList {
	var p problems
	validateAccessSpec(&p, &r.Spec)
	validateReviewMeta(&p, r.ObjectMeta, "", "must be empty")
	return p.list
}

func validateSelfAccessReview(r *authorizationv1.SelfSubjectAccessReview) field.ErrorList {
	var p problems
	validateAccessAttributes(&p, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
	validateReviewMeta(&p, r.ObjectMeta, "", "must be empty")
	return p.list
}

func validateLocalAccessReview(r *authorizationv1.LocalSubjectAccessReview) field.ErrorList {
	var p problems
	validateAccessSpec(&p, &r.Spec)
	validateReviewMeta(&p, r.ObjectMeta, r.Namespace, "must be empty except for namespace")
	if a := r.Spec.ResourceAttributes; a != nil && a.Namespace != r.Namespace {
		p.invalid(field.NewPath("spec", "resourceAttributes", "namespace"), a.Namespace, "must match metadata.namespace")
	}
	if a := r.Spec.NonResourceAttributes; a != nil {
		p.invalid(field.NewPath("spec", "nonResourceAttributes"), (*shownNonResourceAttributes)(a), "disallowed on this kind of request")
	}
	return p.list
}

func validateAccessSpec(p *problems, spec *authorizationv1.SubjectAccessReviewSpec) {
	validateAccessAttributes(p, spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		p.invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified")
	}
}

// validateAccessAttributes wants a question about a resource or about a path.
func validateAccessAttributes(p *problems, resource *authorizationv1.ResourceAttributes, other *authorizationv1.NonResourceAttributes) {
	path := field.NewPath("spec")
	shown := (*shownNonResourceAttributes)(other)
	switch {
	case resource != nil && other != nil:
		p.invalid(path.Child("nonResourceAttributes"), shown, "cannot be specified in combination with resourceAttributes")
	case resource == nil && other == nil:
		p.invalid(path.Child("resourceAttributes"), shown, "exactly one of nonResourceAttributes or resourceAttributes must be specified")
	}
	if resource != nil {
		validateAccessSelectors(p, resource, path.Child("resourceAttributes"))
	}
}

// validateAccessSelectors lets operators pass that only newer servers know.
func validateAccessSelectors(p *problems, a *authorizationv1.ResourceAttributes, path *field.Path) {
	if s := a.FieldSelector; s != nil {
		at := path.Child("fieldSelector")
		validateAccessSelector(p, s.RawSelector, len(s.Requirements), at)
		for i, r := range s.Requirements {
			p.add(metav1validation.ValidateFieldSelectorRequirement(r,
				metav1validation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true},
				at.Child("requirements").Index(i))...)
		}
	}
	if s := a.LabelSelector; s != nil {
		at := path.Child("labelSelector")
		validateAccessSelector(p, s.RawSelector, len(s.Requirements), at)
		for i, r := range s.Requirements {
			p.add(metav1validation.ValidateLabelSelectorRequirement(r,
				metav1validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true},
				at.Child("requirements").Index(i))...)
		}
	}
}

func validateAccessSelector(p *problems, raw string, requirements int, path *field.Path) {
	switch {
	case raw != "" && requirements > 0:
		p.invalid(path.Child("rawSelector"), raw, "may not specified at the same time as requirements")
	case raw == "" && requirements == 0:
		p.required(path.Child("requirements"), fmt.Sprintf("when %s is specified, requirements or rawSelector is required", path))
	}
}

// validateReviewMeta wants metadata to be empty but for the namespace given.
func validateReviewMeta(p *problems, meta metav1.ObjectMeta, namespace, detail string) {
	rest := meta
	rest.ManagedFields = nil
	if !equality.Semantic.DeepEqual(rest, metav1.ObjectMeta{Namespace: namespace}) {
		p.invalid(field.NewPath("metadata"), meta, detail)
	}
}
