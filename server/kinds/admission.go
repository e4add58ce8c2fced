package kinds

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func admissionKinds() []*Kind {
	return []*Kind{
		mutatingPolicyKind(), mutatingPolicyBindingKind(), mutatingWebhooksKind(),
		validatingPolicyKind(), validatingPolicyBindingKind(), validatingWebhooksKind(),
	}
}

// admissionKind has what the kinds of the group have in common.
func admissionKind(kind, resource string) *Kind {
	return &Kind{
		GVK:        admissionv1.SchemeGroupVersion.WithKind(kind),
		Resource:   resource,
		Singular:   strings.ToLower(kind),
		Categories: []string{"api-extensions"},

		HasGeneration: true,
		NeedsRevision: true,
	}
}

// staticAdmissionSuffix ends names that are kept for configuration in files.
const staticAdmissionSuffix = ".static.k8s.io"

func warnAdmissionName(name string) []string {
	if !strings.HasSuffix(name, staticAdmissionSuffix) {
		return nil
	}
	return []string{fmt.Sprintf("metadata.name: names ending with %q will be reserved for static manifest-based configurations when the ManifestBasedAdmissionControlConfig feature gate is enabled", staticAdmissionSuffix)}
}

func mutatingWebhooksKind() *Kind {
	k := admissionKind("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
	k.New, k.NewList = newOf[admissionv1.MutatingWebhookConfiguration], newOf[admissionv1.MutatingWebhookConfigurationList]
	k.Default = each(func(c *admissionv1.MutatingWebhookConfiguration) {
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			defaultAdmissionWebhook(mutatingHook(w))
			setDefault(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
		}
	})
	k.Validate = check(validateMutatingWebhooks)
	k.Warnings = warn(func(c, _ *admissionv1.MutatingWebhookConfiguration) []string { return warnAdmissionName(c.Name) })
	k.Columns = admissionWebhookColumns()
	k.Cells = cells(func(c *admissionv1.MutatingWebhookConfiguration, now metav1.Time) []any {
		return []any{c.Name, int64(len(c.Webhooks)), Age(c.CreationTimestamp, now)}
	})
	return k
}

func validatingWebhooksKind() *Kind {
	k := admissionKind("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
	k.New, k.NewList = newOf[admissionv1.ValidatingWebhookConfiguration], newOf[admissionv1.ValidatingWebhookConfigurationList]
	k.Default = each(func(c *admissionv1.ValidatingWebhookConfiguration) {
		for i := range c.Webhooks {
			defaultAdmissionWebhook(validatingHook(&c.Webhooks[i]))
		}
	})
	k.Validate = check(validateValidatingWebhooks)
	k.Warnings = warn(func(c, _ *admissionv1.ValidatingWebhookConfiguration) []string { return warnAdmissionName(c.Name) })
	k.Columns = admissionWebhookColumns()
	k.Cells = cells(func(c *admissionv1.ValidatingWebhookConfiguration, now metav1.Time) []any {
		return []any{c.Name, int64(len(c.Webhooks)), Age(c.CreationTimestamp, now)}
	})
	return k
}

func admissionWebhookColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn(),
		integerColumn("Webhooks", "How many webhooks there are."),
		ageColumn(),
	}
}

func validatingPolicyKind() *Kind {
	k := admissionKind("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
	k.New, k.NewList = newOf[admissionv1.ValidatingAdmissionPolicy], newOf[admissionv1.ValidatingAdmissionPolicyList]
	k.HasStatus = true
	k.Default = each(func(c *admissionv1.ValidatingAdmissionPolicy) {
		setDefault(&c.Spec.FailurePolicy, admissionv1.Fail)
		defaultMatchResources(c.Spec.MatchConstraints)
	})
	k.Validate = check(validateValidatingPolicy)
	k.ValidateStatus = checkPair(validateValidatingPolicyStatus)
	k.Warnings = warn(func(c, _ *admissionv1.ValidatingAdmissionPolicy) []string { return warnAdmissionName(c.Name) })
	k.Columns = admissionPolicyColumns("Validations", "How many validations there are.")
	k.Cells = cells(func(c *admissionv1.ValidatingAdmissionPolicy, now metav1.Time) []any {
		return admissionPolicyCells(&c.ObjectMeta, len(c.Spec.Validations), c.Spec.ParamKind, now)
	})
	return k
}

func mutatingPolicyKind() *Kind {
	k := admissionKind("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
	k.New, k.NewList = newOf[admissionv1.MutatingAdmissionPolicy], newOf[admissionv1.MutatingAdmissionPolicyList]
	k.Default = each(func(c *admissionv1.MutatingAdmissionPolicy) {
		setDefault(&c.Spec.FailurePolicy, admissionv1.Fail)
		defaultMatchResources(c.Spec.MatchConstraints)
	})
	k.Validate = check(validateMutatingPolicy)
	k.Warnings = warn(func(c, _ *admissionv1.MutatingAdmissionPolicy) []string { return warnAdmissionName(c.Name) })
	k.Columns = admissionPolicyColumns("Mutations", "How many mutations there are.")
	k.Cells = cells(func(c *admissionv1.MutatingAdmissionPolicy, now metav1.Time) []any {
		return admissionPolicyCells(&c.ObjectMeta, len(c.Spec.Mutations), c.Spec.ParamKind, now)
	})
	return k
}

func admissionPolicyColumns(what, description string) []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn(),
		integerColumn(what, description),
		column("ParamKind", "The kind of object that holds the policy's parameters."),
		ageColumn(),
	}
}

func admissionPolicyCells(meta *metav1.ObjectMeta, count int, params *admissionv1.ParamKind, now metav1.Time) []any {
	kind := "<unset>"
	if params != nil {
		kind = params.APIVersion + "/" + params.Kind
	}
	return []any{meta.Name, int64(count), kind, Age(meta.CreationTimestamp, now)}
}

func validatingPolicyBindingKind() *Kind {
	k := admissionKind("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
	k.New, k.NewList = newOf[admissionv1.ValidatingAdmissionPolicyBinding], newOf[admissionv1.ValidatingAdmissionPolicyBindingList]
	k.Default = each(func(b *admissionv1.ValidatingAdmissionPolicyBinding) {
		defaultMatchResources(b.Spec.MatchResources)
	})
	k.Validate = check(validateValidatingBinding)
	k.Warnings = warn(func(b, _ *admissionv1.ValidatingAdmissionPolicyBinding) []string { return warnAdmissionName(b.Name) })
	k.Columns = admissionBindingColumns()
	k.Cells = cells(func(b *admissionv1.ValidatingAdmissionPolicyBinding, now metav1.Time) []any {
		return admissionBindingCells(&b.ObjectMeta, b.Spec.PolicyName, b.Spec.ParamRef, now)
	})
	return k
}

func mutatingPolicyBindingKind() *Kind {
	k := admissionKind("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
	k.New, k.NewList = newOf[admissionv1.MutatingAdmissionPolicyBinding], newOf[admissionv1.MutatingAdmissionPolicyBindingList]
	k.Default = each(func(b *admissionv1.MutatingAdmissionPolicyBinding) {
		defaultMatchResources(b.Spec.MatchResources)
	})
	k.Validate = check(validateMutatingBinding)
	k.Warnings = warn(func(b, _ *admissionv1.MutatingAdmissionPolicyBinding) []string { return warnAdmissionName(b.Name) })
	k.Columns = admissionBindingColumns()
	k.Cells = cells(func(b *admissionv1.MutatingAdmissionPolicyBinding, now metav1.Time) []any {
		return admissionBindingCells(&b.ObjectMeta, b.Spec.PolicyName, b.Spec.ParamRef, now)
	})
	return k
}

func admissionBindingColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn(),
		column("PolicyName", "The policy that is bound."),
		column("ParamRef", "The object that holds the parameters."),
		ageColumn(),
	}
}

func admissionBindingCells(meta *metav1.ObjectMeta, policy string, ref *admissionv1.ParamRef, now metav1.Time) []any {
	params := "<unset>"
	switch {
	case ref == nil:
	case ref.Name != "":
		params = orElse(ref.Namespace, "*") + "/" + ref.Name
	case ref.Selector != nil:
		params = ref.Selector.String()
	}
	return []any{meta.Name, policy, params, Age(meta.CreationTimestamp, now)}
}
