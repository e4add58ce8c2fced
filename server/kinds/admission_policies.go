package kinds

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The expressions of policies are looked at for presence only here; whoever
// runs them compiles them.

func validateValidatingPolicy(c *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	var p problems
	path, spec := field.NewPath("spec"), &c.Spec
	validateFailurePolicy(&p, spec.FailurePolicy, path.Child("failurePolicy"))
	validateParamKind(&p, spec.ParamKind, path.Child("paramKind"))
	validateMatchConstraints(&p, spec.MatchConstraints, path.Child("matchConstraints"))
	validateMatchConditions(&p, spec.MatchConditions, path.Child("matchConditions"))
	validatePolicyVariables(&p, spec.Variables, path.Child("variables"))
	if len(spec.Validations)+len(spec.AuditAnnotations) == 0 {
		p.required(path.Child("validations"), "validations or auditAnnotations must contain at least one item")
		p.required(path.Child("auditAnnotations"), "validations or auditAnnotations must contain at least one item")
		return p.list
	}
	for i := range spec.Validations {
		validatePolicyValidation(&p, &spec.Validations[i], path.Child("validations").Index(i))
	}
	validateAuditAnnotations(&p, c.Name, spec.AuditAnnotations, path.Child("auditAnnotations"))
	return p.list
}

func validateMutatingPolicy(c *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
	var p problems
	path, spec := field.NewPath("spec"), &c.Spec
	validateFailurePolicy(&p, spec.FailurePolicy, path.Child("failurePolicy"))
	validateParamKind(&p, spec.ParamKind, path.Child("paramKind"))
	validateMatchConstraints(&p, spec.MatchConstraints, path.Child("matchConstraints"))
	validateMutatedOperations(&p, spec.MatchConstraints, path.Child("matchConstraints"))
	validateMatchConditions(&p, spec.MatchConditions, path.Child("matchConditions"))
	validatePolicyVariables(&p, spec.Variables, path.Child("variables"))
	if len(spec.Mutations) == 0 {
		p.required(path.Child("mutations"), "mutations must contain at least one item")
	}
	for i := range spec.Mutations {
		validatePolicyMutation(&p, &spec.Mutations[i], path.Child("mutations").Index(i))
	}
	chosen(&p, path.Child("reinvocationPolicy"), spec.ReinvocationPolicy,
		admissionv1.IfNeededReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
	return p.list
}

func validateFailurePolicy(p *problems, policy *admissionv1.FailurePolicyType, path *field.Path) {
	if policy == nil {
		p.required(path, "")
		return
	}
	oneOf(p, path, *policy, admissionv1.Fail, admissionv1.Ignore)
}

func validateParamKind(p *problems, k *admissionv1.ParamKind, path *field.Path) {
	if k == nil {
		return
	}
	if k.APIVersion == "" {
		p.required(path.Child("apiVersion"), "")
	} else {
		validateParamVersion(p, k.APIVersion, path.Child("apiVersion"))
	}
	if k.Kind == "" {
		p.required(path.Child("kind"), "")
	} else if wrong := validation.IsDNS1035Label(strings.ToLower(k.Kind)); len(wrong) > 0 {
		p.invalid(path.Child("kind"), k.Kind, "may have mixed case, but should otherwise match: "+strings.Join(wrong, ","))
	}
}

func validateParamVersion(p *problems, gv string, path *field.Path) {
	if strings.Count(gv, "/") > 1 {
		p.invalid(path, gv, "unexpected GroupVersion string: "+gv)
		return
	}
	group, version, found := strings.Cut(gv, "/")
	if !found {
		group, version = "", gv
	}
	if group != "" {
		if wrong := validation.IsDNS1123Subdomain(group); len(wrong) > 0 {
			p.invalid(path, group, strings.Join(wrong, ","))
		}
	}
	if version == "" {
		p.invalid(path, gv, "version must be specified")
	} else if wrong := validation.IsDNS1035Label(version); len(wrong) > 0 {
		p.invalid(path, version, strings.Join(wrong, ","))
	}
}

var (
	celIdentifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)
	celReserved   = []string{
		"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in",
		"let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while",
	}
)

func validatePolicyVariables(p *problems, variables []admissionv1.Variable, path *field.Path) {
	for i, v := range variables {
		at := path.Index(i)
		if strings.TrimSpace(v.Name) == "" {
			p.required(at.Child("name"), "name is not specified")
		} else if !celIdentifier.MatchString(v.Name) || slices.Contains(celReserved, v.Name) {
			p.invalid(at.Child("name"), v.Name, "must be a valid CEL identifier")
		}
		if strings.TrimSpace(v.Expression) == "" {
			p.required(at.Child("expression"), "expression is not specified")
		}
	}
}

func validatePolicyValidation(p *problems, v *admissionv1.Validation, path *field.Path) {
	message := strings.TrimSpace(v.Message)
	if strings.TrimSpace(v.Expression) == "" {
		p.required(path.Child("expression"), "expression is not specified")
	}
	if v.MessageExpression != "" && strings.TrimSpace(v.MessageExpression) == "" {
		p.invalid(path.Child("messageExpression"), v.MessageExpression, "must be non-empty if specified")
	}
	switch {
	case v.Message != "" && message == "":
		p.invalid(path.Child("message"), v.Message, "must be non-empty if specified")
	case strings.ContainsAny(message, "\n\r"):
		p.invalid(path.Child("message"), v.Message, "must not contain line breaks")
	}
	if v.Reason != nil {
		oneOf(p, path.Child("reason"), *v.Reason,
			metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)
	}
}

func validateAuditAnnotations(p *problems, policy string, annotations []admissionv1.AuditAnnotation, path *field.Path) {
	const most, longest = 20, 5 * 1024
	if len(annotations) > most {
		shown := make([]shownAuditAnnotation, len(annotations))
		for i, a := range annotations {
			shown[i] = shownAuditAnnotation(a)
		}
		p.invalid(path, shown, fmt.Sprintf("must not have more than %d auditAnnotations", most))
	}
	before := seen{}
	for i, a := range annotations {
		key, value := path.Index(i).Child("key"), path.Index(i).Child("valueExpression")
		if policy == "" {
			p.invalid(key, a.Key, "requires metadata.name be non-empty")
		} else {
			p.invalid(key, policy+"/"+a.Key, content.IsLabelKey(policy+"/"+a.Key)...)
		}
		switch n := len(strings.TrimSpace(a.ValueExpression)); {
		case n == 0:
			p.required(value, "valueExpression is not specified")
		case n > longest:
			p.required(value, fmt.Sprintf("must not exceed %d bytes in length", longest))
		}
		if before.again(a.Key) {
			p.duplicate(key, a.Key)
		}
	}
}

func validatePolicyMutation(p *problems, m *admissionv1.Mutation, path *field.Path) {
	patch, apply := path.Child("jsonPatch"), path.Child("applyConfiguration")
	switch m.PatchType {
	case "":
		p.required(path.Child("patchType"), "")
	case admissionv1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			p.required(patch, "must be specified when patchType is JSONPatch")
		} else {
			validatePatchExpression(p, m.JSONPatch.Expression, patch)
		}
		if m.ApplyConfiguration != nil {
			p.invalid(apply, "{applyConfiguration}", "must not be specified when patchType is JSONPatch")
		}
	case admissionv1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			p.required(apply, "must be specified when patchType is ApplyConfiguration")
		} else {
			validatePatchExpression(p, m.ApplyConfiguration.Expression, apply)
		}
		if m.JSONPatch != nil {
			p.invalid(patch, "{jsonPatch}", "must not be specified when patchType is ApplyConfiguration")
		}
	default:
		oneOf(p, path.Child("patchType"), m.PatchType,
			admissionv1.PatchTypeApplyConfiguration, admissionv1.PatchTypeJSONPatch)
	}
}

func validatePatchExpression(p *problems, expression string, path *field.Path) {
	p.nonEmpty(path.Child("expression"), strings.TrimSpace(expression))
}

func validateValidatingPolicyStatus(c, _ *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	var p problems
	path := field.NewPath("status")
	if checked := c.Status.TypeChecking; checked != nil {
		for i, w := range checked.ExpressionWarnings {
			at := path.Child("typeChecking", "expressionWarnings").Index(i)
			p.nonEmpty(at.Child("warning"), w.Warning)
			p.nonEmpty(at.Child("fieldRef"), strings.TrimSpace(w.FieldRef))
		}
	}
	p.add(metav1validation.ValidateConditions(c.Status.Conditions, path.Child("conditions"))...)
	return p.list
}
