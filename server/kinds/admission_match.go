package kinds

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func defaultMatchResources(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	setDefault(&m.MatchPolicy, admissionv1.Equivalent)
	setDefault(&m.NamespaceSelector, metav1.LabelSelector{})
	setDefault(&m.ObjectSelector, metav1.LabelSelector{})
	for i := range m.ResourceRules {
		setDefault(&m.ResourceRules[i].Scope, admissionv1.AllScopes)
	}
	for i := range m.ExcludeResourceRules {
		setDefault(&m.ExcludeResourceRules[i].Scope, admissionv1.AllScopes)
	}
}

// validateMatchConstraints checks those of a policy, which needs a rule to know
// the types of the objects.
func validateMatchConstraints(p *problems, m *admissionv1.MatchResources, path *field.Path) {
	if m == nil {
		p.required(path, "")
		return
	}
	validateMatchResources(p, m, path)
	if len(m.ResourceRules) == 0 {
		p.required(path.Child("resourceRules"), "")
	}
}

func validateMatchResources(p *problems, m *admissionv1.MatchResources, path *field.Path) {
	if m == nil {
		return
	}
	if m.MatchPolicy == nil {
		p.required(path.Child("matchPolicy"), "")
	} else {
		oneOf(p, path.Child("matchPolicy"), *m.MatchPolicy, admissionv1.Equivalent, admissionv1.Exact)
	}
	validateNeededSelector(p, m.NamespaceSelector, path.Child("namespaceSelector"))
	validateNeededSelector(p, m.ObjectSelector, path.Child("objectSelector"))
	for i := range m.ResourceRules {
		validateNamedRule(p, &m.ResourceRules[i], path.Child("resourceRules").Index(i))
	}
	for i := range m.ExcludeResourceRules {
		validateNamedRule(p, &m.ExcludeResourceRules[i], path.Child("excludeResourceRules").Index(i))
	}
}

func validateNeededSelector(p *problems, s *metav1.LabelSelector, path *field.Path) {
	if s == nil {
		p.required(path, "")
		return
	}
	validateSelector(p, s, path)
}

func validateNamedRule(p *problems, r *admissionv1.NamedRuleWithOperations, path *field.Path) {
	before := seen{}
	for i, name := range r.ResourceNames {
		at := path.Child("resourceNames").Index(i)
		p.invalid(at, name, content.IsPathSegmentName(name)...)
		if before.again(name) {
			p.duplicate(at, name)
		}
	}
	validateAdmissionRule(p, &r.RuleWithOperations, path)
}

// validateMutatedOperations refuses rules for requests that carry no object to
// change.
func validateMutatedOperations(p *problems, m *admissionv1.MatchResources, path *field.Path) {
	if m == nil {
		return
	}
	for _, r := range m.ResourceRules {
		for _, o := range r.Operations {
			oneOf(p, path.Child("resourceRules", "operations"), o,
				admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create, admissionv1.Update)
		}
	}
}

func validateMatchConditions(p *problems, conditions []admissionv1.MatchCondition, path *field.Path) {
	const most = 64
	if len(conditions) > most {
		p.add(field.TooMany(path, len(conditions), most))
	}
	before := seen{}
	for i, c := range conditions {
		at := path.Index(i)
		p.nonEmpty(at.Child("expression"), strings.TrimSpace(c.Expression))
		p.named(at.Child("name"), c.Name, content.IsLabelKey)
		if c.Name != "" && before.again(c.Name) {
			p.duplicate(at.Child("name"), c.Name)
		}
	}
}

func validateValidatingBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	var p problems
	path := field.NewPath("spec")
	validatePolicyName(&p, b.Spec.PolicyName, path.Child("policyName"))
	validateParamRef(&p, b.Spec.ParamRef, path.Child("paramRef"))
	validateMatchResources(&p, b.Spec.MatchResources, path.Child("matchResources"))
	validateValidationActions(&p, b.Spec.ValidationActions, path.Child("validationActions"))
	return p.list
}

func validateMutatingBinding(b *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
	var p problems
	path := field.NewPath("spec")
	validatePolicyName(&p, b.Spec.PolicyName, path.Child("policyName"))
	validateParamRef(&p, b.Spec.ParamRef, path.Child("paramRef"))
	validateMatchResources(&p, b.Spec.MatchResources, path.Child("matchResources"))
	validateMutatedOperations(&p, b.Spec.MatchResources, path.Child("matchResources"))
	return p.list
}

func validatePolicyName(p *problems, name string, path *field.Path) {
	p.named(path, name, func(s string) []string { return apivalidation.NameIsDNSSubdomain(s, false) })
}

func validateParamRef(p *problems, ref *admissionv1.ParamRef, path *field.Path) {
	if ref == nil {
		return
	}
	if ref.Name != "" {
		p.invalid(path.Child("name"), ref.Name, content.IsPathSegmentName(ref.Name)...)
	}
	validateSelector(p, ref.Selector, path.Child("selector"))
	switch {
	case ref.Name != "" && ref.Selector != nil:
		p.forbidden(path.Child("name"), "name and selector are mutually exclusive")
		p.forbidden(path.Child("selector"), "name and selector are mutually exclusive")
	case ref.Name == "" && ref.Selector == nil:
		p.required(path, "one of name or selector must be specified")
	}
	at := path.Child("parameterNotFoundAction")
	if ref.ParameterNotFoundAction == nil {
		p.required(at, "")
		return
	}
	chosen(p, at, *ref.ParameterNotFoundAction, admissionv1.DenyAction, admissionv1.AllowAction)
}

func validateValidationActions(p *problems, actions []admissionv1.ValidationAction, path *field.Path) {
	before := seen{}
	for i, a := range actions {
		oneOf(p, path.Index(i), a, admissionv1.Audit, admissionv1.Deny, admissionv1.Warn)
		if before.again(string(a)) {
			p.duplicate(path.Index(i), a)
		}
	}
	if before[string(admissionv1.Deny)] && before[string(admissionv1.Warn)] {
		p.invalid(path, actions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)")
	}
	if len(actions) == 0 {
		p.required(path, "at least one validation action is required")
	}
}
