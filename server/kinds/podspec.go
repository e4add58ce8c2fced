package kinds

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podChecker checks one pod spec, which has its defaults. The files podspec_*.go
// hold its methods, one concept each.
type podChecker struct {
	problems
	spec *corev1.PodSpec
	path *field.Path
	meta *metav1.ObjectMeta // of the pod; nil in templates

	volumes map[string]*corev1.VolumeSource // those without fault
	claims  map[string]bool                 // names of spec.resourceClaims
}

func newPodChecker(spec *corev1.PodSpec, meta *metav1.ObjectMeta, path *field.Path) *podChecker {
	c := &podChecker{spec: spec, meta: meta, path: path,
		volumes: map[string]*corev1.VolumeSource{}, claims: map[string]bool{}}
	for _, claim := range spec.ResourceClaims {
		if claim.Name != "" {
			c.claims[claim.Name] = true
		}
	}
	return c
}

// validatePodTemplate checks the template of a workload.
func validatePodTemplate(t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	c := newPodChecker(&t.Spec, nil, path.Child("spec"))
	c.add(metavalidation.ValidateLabels(t.Labels, path.Child("labels"))...)
	c.add(apivalidation.ValidateAnnotations(t.Annotations, path.Child("annotations"))...)
	c.checkAnnotations(t.Annotations, path.Child("annotations"))
	c.checkSpec()
	c.checkProfilesAgree(t.Annotations)
	if len(t.Spec.EphemeralContainers) > 0 {
		c.forbidden(c.path.Child("ephemeralContainers"), "ephemeral containers not allowed in pod template")
	}
	return c.list
}

// checkSpec checks all that pods and templates have in common.
func (c *podChecker) checkSpec() {
	if c.spec.TerminationGracePeriodSeconds == nil {
		c.required(c.path.Child("terminationGracePeriodSeconds"), "")
	}
	c.checkVolumes()
	c.checkResourceClaims()
	c.checkContainers()
	c.checkInitContainers()
	c.checkEphemeralContainers()
	c.checkPodResources()
	c.checkHostPorts()
	c.checkPolicies()
	c.checkPodSecurity()
	c.checkScheduling()
	c.checkNetworking()
	c.checkReferences()
	c.checkHostNamespaces()
	c.checkOS()
	c.checkFileKeyVolumes()
}

func (c *podChecker) checkPolicies() {
	chosen(&c.problems, c.path.Child("restartPolicy"), c.spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	chosen(&c.problems, c.path.Child("dnsPolicy"), c.spec.DNSPolicy,
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	if p := c.spec.PreemptionPolicy; p != nil {
		chosen(&c.problems, c.path.Child("preemptionPolicy"), *p,
			corev1.PreemptLowerPriority, corev1.PreemptNever)
	}
	if s := c.spec.ActiveDeadlineSeconds; s != nil && (*s < 1 || *s > math.MaxInt32) {
		c.invalid(c.path.Child("activeDeadlineSeconds"), *s, validation.InclusiveRangeError(1, math.MaxInt32))
	}
	for i, gate := range c.spec.ReadinessGates {
		name := string(gate.ConditionType)
		c.invalid(c.path.Child("readinessGates").Index(i).Child("conditionType"), name, validation.IsQualifiedName(name)...)
	}
}

// checkReferences checks the names of other objects.
func (c *podChecker) checkReferences() {
	for _, ref := range []struct{ field, name string }{
		{"serviceAccountName", c.spec.ServiceAccountName},
		{"nodeName", c.spec.NodeName},
		{"priorityClassName", c.spec.PriorityClassName},
	} {
		if ref.name != "" {
			c.invalid(c.path.Child(ref.field), ref.name, apivalidation.NameIsDNSSubdomain(ref.name, false)...)
		}
	}
	if name := c.spec.RuntimeClassName; name != nil {
		c.invalid(c.path.Child("runtimeClassName"), *name, apivalidation.NameIsDNSSubdomain(*name, false)...)
	}
}

// checkNetworking checks names, name resolution and host aliases.
func (c *podChecker) checkNetworking() {
	for _, label := range []struct{ field, value string }{
		{"hostname", c.spec.Hostname}, {"subdomain", c.spec.Subdomain},
	} {
		if label.value != "" {
			c.invalid(c.path.Child(label.field), label.value, validation.IsDNS1123Label(label.value)...)
		}
	}
	c.checkHostnameOverride()
	c.checkDNS()
	for i, alias := range c.spec.HostAliases {
		path := c.path.Child("hostAliases").Index(i)
		c.add(validation.IsValidIPForLegacyField(path.Child("ip"), alias.IP, true, nil)...)
		for j, name := range alias.Hostnames {
			c.invalid(path.Child("hostnames").Index(j), name, validation.IsDNS1123Subdomain(name)...)
		}
	}
}

func (c *podChecker) checkHostnameOverride() {
	name := c.spec.HostnameOverride
	if name == nil {
		return
	}
	path := c.path.Child("hostnameOverride")
	if fqdn := c.spec.SetHostnameAsFQDN; fqdn != nil && *fqdn {
		c.forbidden(path, "may not be specified when setHostnameAsFQDN is true")
	}
	if c.spec.HostNetwork {
		c.forbidden(path, "may not be specified when hostNetwork is true")
	}
	if len(*name) > 64 {
		c.add(field.TooLong(path, "", 64))
	}
	c.invalid(path, *name, validation.IsDNS1123Subdomain(*name)...)
}

// What the resolvers of nodes can hold.
const (
	maxNameservers     = 3
	maxSearches        = 32
	maxSearchesInChars = 2048
)

func (c *podChecker) checkDNS() {
	dns, path := c.spec.DNSConfig, c.path.Child("dnsConfig")
	none := c.spec.DNSPolicy == corev1.DNSNone
	if dns == nil {
		if none {
			c.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
		}
		return
	}
	if none && len(dns.Nameservers) == 0 {
		c.required(path.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")
		return
	}
	if len(dns.Nameservers) > maxNameservers {
		c.invalid(path.Child("nameservers"), dns.Nameservers, fmt.Sprintf("must not have more than %v nameservers", maxNameservers))
	}
	for i, ns := range dns.Nameservers {
		c.add(validation.IsValidIPForLegacyField(path.Child("nameservers").Index(i), ns, true, nil)...)
	}
	c.checkSearches(dns.Searches, path.Child("searches"))
	for i, o := range dns.Options {
		if o.Name == "" {
			c.required(path.Child("options").Index(i), "must not be empty")
		}
	}
}

func (c *podChecker) checkSearches(searches []string, path *field.Path) {
	if len(searches) > maxSearches {
		c.invalid(path, searches, fmt.Sprintf("must not have more than %v search paths", maxSearches))
	}
	if len(strings.Join(searches, " ")) > maxSearchesInChars {
		c.invalid(path, searches, fmt.Sprintf("must not have more than %v characters (including spaces) in the search list", maxSearchesInChars))
	}
	for i, s := range searches {
		if s == "." {
			continue
		}
		domain := strings.TrimSuffix(s, ".")
		c.invalid(path.Index(i), domain, validation.IsDNS1123SubdomainWithUnderscore(domain)...)
	}
}
