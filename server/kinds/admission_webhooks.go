package kinds

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// admissionHook points to the fields that webhooks of both kinds have.
type admissionHook struct {
	name              string
	client            *admissionv1.WebhookClientConfig
	rules             []admissionv1.RuleWithOperations
	failurePolicy     **admissionv1.FailurePolicyType
	matchPolicy       **admissionv1.MatchPolicyType
	namespaceSelector **metav1.LabelSelector
	objectSelector    **metav1.LabelSelector
	sideEffects       *admissionv1.SideEffectClass
	timeoutSeconds    **int32
	reviewVersions    []string
	conditions        []admissionv1.MatchCondition
}

func validatingHook(w *admissionv1.ValidatingWebhook) *admissionHook {
	return &admissionHook{
		w.Name, &w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector,
		&w.ObjectSelector, w.SideEffects, &w.TimeoutSeconds, w.AdmissionReviewVersions, w.MatchConditions,
	}
}

func mutatingHook(w *admissionv1.MutatingWebhook) *admissionHook {
	return &admissionHook{
		w.Name, &w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector,
		&w.ObjectSelector, w.SideEffects, &w.TimeoutSeconds, w.AdmissionReviewVersions, w.MatchConditions,
	}
}

func defaultAdmissionWebhook(w *admissionHook) {
	setDefault(w.failurePolicy, admissionv1.Fail)
	setDefault(w.matchPolicy, admissionv1.Equivalent)
	setDefault(w.namespaceSelector, metav1.LabelSelector{})
	setDefault(w.objectSelector, metav1.LabelSelector{})
	setDefault(w.timeoutSeconds, 10)
	if w.client.Service != nil {
		setDefault(&w.client.Service.Port, 443)
	}
	for i := range w.rules {
		setDefault(&w.rules[i].Scope, admissionv1.AllScopes)
	}
}

func validateValidatingWebhooks(c *admissionv1.ValidatingWebhookConfiguration) field.ErrorList {
	var p problems
	before := seen{}
	for i := range c.Webhooks {
		validateAdmissionWebhook(&p, validatingHook(&c.Webhooks[i]), before, field.NewPath("webhooks").Index(i))
	}
	return p.list
}

func validateMutatingWebhooks(c *admissionv1.MutatingWebhookConfiguration) field.ErrorList {
	var p problems
	before := seen{}
	for i := range c.Webhooks {
		w, path := &c.Webhooks[i], field.NewPath("webhooks").Index(i)
		validateAdmissionWebhook(&p, mutatingHook(w), before, path)
		if w.ReinvocationPolicy != nil {
			oneOf(&p, path.Child("reinvocationPolicy"), *w.ReinvocationPolicy,
				admissionv1.IfNeededReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
		}
	}
	return p.list
}

func validateAdmissionWebhook(p *problems, w *admissionHook, before seen, path *field.Path) {
	p.add(validation.IsFullyQualifiedName(path.Child("name"), w.name)...)
	for i := range w.rules {
		validateAdmissionRule(p, &w.rules[i], path.Child("rules").Index(i))
	}
	if f := *w.failurePolicy; f != nil {
		oneOf(p, path.Child("failurePolicy"), *f, admissionv1.Fail, admissionv1.Ignore)
	}
	if m := *w.matchPolicy; m != nil {
		oneOf(p, path.Child("matchPolicy"), *m, admissionv1.Equivalent, admissionv1.Exact)
	}
	if w.sideEffects == nil {
		p.required(path.Child("sideEffects"), "must specify one of None, NoneOnDryRun")
	} else {
		oneOf(p, path.Child("sideEffects"), *w.sideEffects,
			admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun)
	}
	if t := *w.timeoutSeconds; t != nil && (*t < 1 || *t > 30) {
		p.invalid(path.Child("timeoutSeconds"), *t, "the timeout value must be between 1 and 30 seconds")
	}
	validateSelector(p, *w.namespaceSelector, path.Child("namespaceSelector"))
	validateSelector(p, *w.objectSelector, path.Child("objectSelector"))
	validateWebhookClient(p, w.client, path.Child("clientConfig"))
	validateMatchConditions(p, w.conditions, path.Child("matchConditions"))
	validateReviewVersions(p, w.reviewVersions, path.Child("admissionReviewVersions"))
	if w.name != "" && before.again(w.name) {
		p.duplicate(path.Child("name"), w.name)
	}
}

func validateReviewVersions(p *problems, versions []string, path *field.Path) {
	if len(versions) == 0 {
		p.required(path, "must specify one of v1, v1beta1")
		return
	}
	before := seen{}
	for i, v := range versions {
		if before.again(v) {
			p.invalid(path.Index(i), v, "duplicate version")
			continue
		}
		p.invalid(path.Index(i), v, validation.IsDNS1035Label(v)...)
	}
	if !before["v1"] && !before["v1beta1"] {
		p.invalid(path, versions, "must include at least one of v1, v1beta1")
	}
}

func validateWebhookClient(p *problems, c *admissionv1.WebhookClientConfig, path *field.Path) {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		p.required(path, "exactly one of url or service is required")
	case c.URL != nil:
		validateWebhookURL(p, *c.URL, path.Child("url"))
	default:
		validateWebhookService(p, c.Service, path.Child("service"))
	}
}

func validateWebhookURL(p *problems, raw string, path *field.Path) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(raw)
	if err != nil {
		p.required(path, "url must be a valid URL: "+err.Error()+form)
		return
	}
	if u.Scheme != "https" {
		p.invalid(path, u.Scheme, "'https' is the only allowed URL scheme"+form)
	}
	if u.Host == "" {
		p.invalid(path, u.Host, "host must be specified"+form)
	}
	if u.User != nil {
		p.invalid(path, u.User.String(), "user information is not permitted in the URL")
	}
	if u.Fragment != "" {
		p.invalid(path, u.Fragment, "fragments are not permitted in the URL")
	}
	if u.RawQuery != "" {
		p.invalid(path, u.RawQuery, "query parameters are not permitted in the URL")
	}
}

func validateWebhookService(p *problems, s *admissionv1.ServiceReference, path *field.Path) {
	// The real server takes one for the other; so do we.
	p.nonEmpty(path.Child("name"), s.Namespace)
	p.nonEmpty(path.Child("namespace"), s.Name)
	port := int32(443)
	if s.Port != nil {
		port = *s.Port
	}
	if wrong := validation.IsValidPortNum(int(port)); wrong != nil {
		p.invalid(path.Child("port"), port, "port is not valid: "+strings.Join(wrong, ", "))
	}
	if s.Path != nil {
		validateWebhookPath(p, *s.Path, path.Child("path"))
	}
}

func validateWebhookPath(p *problems, url string, path *field.Path) {
	switch url {
	case "", "/":
		return
	case "//":
		p.invalid(path, url, "segment[0] may not be empty")
		return
	}
	if !strings.HasPrefix(url, "/") {
		p.invalid(path, url, "must start with a '/'")
	}
	for i, segment := range strings.Split(strings.TrimSuffix(url[1:], "/"), "/") {
		if segment == "" {
			p.invalid(path, url, fmt.Sprintf("segment[%d] may not be empty", i))
			continue
		}
		for _, wrong := range validation.IsDNS1123Subdomain(segment) {
			p.invalid(path, url, fmt.Sprintf("segment[%d]: %s", i, wrong))
		}
	}
}

// validateAdmissionRule checks which requests a webhook or a policy is for.
func validateAdmissionRule(p *problems, r *admissionv1.RuleWithOperations, path *field.Path) {
	operations := path.Child("operations")
	if len(r.Operations) == 0 {
		p.required(operations, "")
	}
	if len(r.Operations) > 1 && slices.Contains(r.Operations, admissionv1.OperationAll) {
		p.invalid(operations, r.Operations, "if '*' is present, must not specify other operations")
	}
	for i, o := range r.Operations {
		oneOf(p, operations.Index(i), o, admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create,
			admissionv1.Delete, admissionv1.Update)
	}
	validateAloneWildcard(p, r.APIGroups, "API groups", path.Child("apiGroups"))
	validateAloneWildcard(p, r.APIVersions, "API versions", path.Child("apiVersions"))
	for i, v := range r.APIVersions {
		p.nonEmpty(path.Child("apiVersions").Index(i), v)
	}
	validateAdmissionResources(p, r.Resources, path.Child("resources"))
	if r.Scope != nil {
		oneOf(p, path.Child("scope"), *r.Scope,
			admissionv1.AllScopes, admissionv1.ClusterScope, admissionv1.NamespacedScope)
	}
}

func validateAloneWildcard(p *problems, values []string, what string, path *field.Path) {
	if len(values) == 0 {
		p.required(path, "")
	}
	if len(values) > 1 && slices.Contains(values, "*") {
		p.invalid(path, values, "if '*' is present, must not specify other "+what)
	}
}

// validateAdmissionResources refuses entries that an earlier wildcard covers.
func validateAdmissionResources(p *problems, resources []string, path *field.Path) {
	if len(resources) == 0 {
		p.required(path, "")
	}
	allOf, everywhere := seen{}, seen{} // x of "x/*", and of "*/x"
	plainLast := false
	for i, r := range resources {
		if r == "" {
			p.required(path.Index(i), "")
			continue
		}
		resource, sub, found := strings.Cut(r, "/")
		if !found {
			plainLast = r != "*"
			continue
		}
		if allOf[resource] {
			p.invalid(path.Index(i), r, fmt.Sprintf("if '%s/*' is present, must not specify %s", resource, r))
		}
		if everywhere[sub] {
			p.invalid(path.Index(i), r, fmt.Sprintf("if '*/%s' is present, must not specify %s", sub, r))
		}
		allOf[resource] = allOf[resource] || sub == "*"
		everywhere[sub] = everywhere[sub] || resource == "*"
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		p.invalid(path, resources, "if '*/*' is present, must not specify other resources")
	}
	if plainLast && slices.Contains(resources, "*") {
		p.invalid(path, resources, "if '*' is present, must not specify other resources without subresources")
	}
}
