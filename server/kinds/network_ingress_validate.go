package kinds

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const ingressNotAnIP = "must be a DNS name, not an IP address"

func validateIngress(i *networkingv1.Ingress) field.ErrorList {
	var p problems
	path, spec := field.NewPath("spec"), &i.Spec
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		p.invalid(path, spec.Rules, "either `defaultBackend` or `rules` must be specified")
	}
	if spec.DefaultBackend != nil {
		validateIngressBackend(&p, spec.DefaultBackend, path.Child("defaultBackend"))
	}
	for i := range spec.Rules {
		validateIngressRule(&p, &spec.Rules[i], path.Child("rules").Index(i))
	}
	for i := range spec.TLS {
		validateIngressTLS(&p, &spec.TLS[i], path.Child("tls").Index(i))
	}
	if spec.IngressClassName != nil {
		p.invalid(path.Child("ingressClassName"), *spec.IngressClassName,
			apivalidation.NameIsDNSSubdomain(*spec.IngressClassName, false)...)
	}
	return p.list
}

func validateIngressCreate(i *networkingv1.Ingress) field.ErrorList {
	class, set := i.Annotations[ingressClassAnnotation]
	if !set || i.Spec.IngressClassName == nil || class == *i.Spec.IngressClassName {
		return nil
	}
	path := field.NewPath("annotations").Child(ingressClassAnnotation)
	return field.ErrorList{field.Invalid(path, class, "must match `ingressClassName` when both are specified")}
}

func validateIngressRule(p *problems, r *networkingv1.IngressRule, path *field.Path) {
	if r.Host != "" {
		if isIPAddress(r.Host) {
			p.invalid(path.Child("host"), r.Host, ingressNotAnIP)
		}
		p.invalid(path.Child("host"), r.Host, ingressHostName(r.Host)...)
	}
	if r.HTTP == nil {
		return
	}
	paths := path.Child("http", "paths")
	if len(r.HTTP.Paths) == 0 {
		p.required(paths, "")
	}
	for i := range r.HTTP.Paths {
		validateIngressPath(p, &r.HTTP.Paths[i], paths.Index(i))
	}
}

// ingressHostName returns what is wrong with a host; its first label may be a
// wildcard.
func ingressHostName(host string) []string {
	if strings.Contains(host, "*") {
		return validation.IsWildcardDNS1123Subdomain(host)
	}
	return validation.IsDNS1123Subdomain(host)
}

func validateIngressTLS(p *problems, tls *networkingv1.IngressTLS, path *field.Path) {
	for i, host := range tls.Hosts {
		p.invalid(path.Child("hosts").Index(i), host, ingressHostName(host)...)
	}
	if tls.SecretName != "" {
		p.invalid(path.Child("secretName"), tls.SecretName, apivalidation.NameIsDNSSubdomain(tls.SecretName, false)...)
	}
}

func validateIngressPath(p *problems, at *networkingv1.HTTPIngressPath, path *field.Path) {
	if at.PathType == nil {
		p.required(path.Child("pathType"), "pathType must be specified")
		return
	}
	switch *at.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		validateIngressURLPath(p, at.Path, path.Child("path"))
	case networkingv1.PathTypeImplementationSpecific:
		if at.Path != "" && !strings.HasPrefix(at.Path, "/") {
			p.invalid(path.Child("path"), at.Path, "must be an absolute path")
		}
	default:
		oneOf(p, path.Child("pathType"), *at.PathType,
			networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix)
	}
	validateIngressBackend(p, &at.Backend, path.Child("backend"))
}

func validateIngressURLPath(p *problems, url string, path *field.Path) {
	if !strings.HasPrefix(url, "/") {
		p.invalid(path, url, "must be an absolute path")
	}
	for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(url, part) {
			p.invalid(path, url, fmt.Sprintf("must not contain '%s'", part))
		}
	}
	for _, end := range []string{"/..", "/."} {
		if strings.HasSuffix(url, end) {
			p.invalid(path, url, fmt.Sprintf("cannot end with '%s'", end))
		}
	}
}

func validateIngressBackend(p *problems, b *networkingv1.IngressBackend, path *field.Path) {
	switch {
	case b.Resource != nil && b.Service != nil:
		p.invalid(path, "", "cannot set both resource and service backends")
	case b.Resource != nil:
		validateIngressResource(p, b.Resource, path.Child("resource"))
	case b.Service != nil:
		p.named(path.Child("service", "name"), b.Service.Name, func(name string) []string {
			return apivalidation.NameIsDNSLabel(name, false)
		})
		validateIngressPort(p, b.Service.Port, path)
	default:
		p.invalid(path, "", "resource or service backend is required")
	}
}

func validateIngressPort(p *problems, port networkingv1.ServiceBackendPort, path *field.Path) {
	at := path.Child("service", "port")
	switch {
	case port.Name != "" && port.Number != 0:
		p.invalid(path, "", "cannot set both port name & port number")
	case port.Name != "":
		p.invalid(at.Child("name"), port.Name, validation.IsValidPortName(port.Name)...)
	case port.Number != 0:
		p.invalid(at.Child("number"), port.Number, validation.IsValidPortNum(int(port.Number))...)
	default:
		p.required(path, "port name or number is required")
	}
}

func validateIngressResource(p *problems, ref *corev1.TypedLocalObjectReference, path *field.Path) {
	validateObjectLink(p, ref.APIGroup, ref.Kind, ref.Name, path)
}

// validateObjectLink checks a reference to an object of any kind.
func validateObjectLink(p *problems, group *string, kind, name string, path *field.Path) {
	if group != nil {
		p.invalid(path.Child("apiGroup"), *group, validation.IsDNS1123Subdomain(*group)...)
	}
	p.named(path.Child("kind"), kind, content.IsPathSegmentName)
	p.named(path.Child("name"), name, content.IsPathSegmentName)
}

func validateIngressStatus(i, old *networkingv1.Ingress) field.ErrorList {
	var p problems
	var before []string
	for _, in := range old.Status.LoadBalancer.Ingress {
		before = append(before, in.IP)
	}
	path := field.NewPath("status", "loadBalancer", "ingress")
	for n, in := range i.Status.LoadBalancer.Ingress {
		if in.IP != "" {
			p.add(validation.IsValidIPForLegacyField(path.Index(n).Child("ip"), in.IP, true, before)...)
		}
		if in.Hostname != "" {
			at := path.Index(n).Child("hostname")
			p.invalid(at, in.Hostname, validation.IsDNS1123Subdomain(in.Hostname)...)
			if isIPAddress(in.Hostname) {
				p.invalid(at, in.Hostname, ingressNotAnIP)
			}
		}
	}
	return p.list
}

// isIPAddress also says yes to addresses with leading zeros.
func isIPAddress(s string) bool {
	return len(validation.IsValidIPForLegacyField(nil, s, false, nil)) == 0
}

func validateIngressClass(c *networkingv1.IngressClass) field.ErrorList {
	const longest = 250
	var p problems
	path := field.NewPath("spec")
	if at := path.Child("controller"); c.Spec.Controller == "" {
		p.required(at, "")
	} else {
		if len(c.Spec.Controller) > longest {
			p.add(field.TooLong(at, "", longest))
		}
		p.add(validation.IsDomainPrefixedPath(at, c.Spec.Controller)...)
	}
	if c.Spec.Parameters != nil {
		validateIngressClassParameters(&p, c.Spec.Parameters, path.Child("parameters"))
	}
	return p.list
}

func validateIngressClassUpdate(c, old *networkingv1.IngressClass) field.ErrorList {
	return apivalidation.ValidateImmutableField(c.Spec.Controller, old.Spec.Controller, field.NewPath("spec", "controller"))
}

func validateIngressClassParameters(p *problems, ref *networkingv1.IngressClassParametersReference, path *field.Path) {
	const cluster = networkingv1.IngressClassParametersReferenceScopeCluster
	const namespace = networkingv1.IngressClassParametersReferenceScopeNamespace

	validateObjectLink(p, ref.APIGroup, ref.Kind, ref.Name, path)
	if ref.Scope == nil {
		p.required(path.Child("scope"), "")
		return
	}
	at := path.Child("namespace")
	switch *ref.Scope {
	case namespace:
		if ref.Namespace == nil {
			p.required(at, "`parameters.scope` is set to 'Namespace'")
		} else {
			p.invalid(at, *ref.Namespace, apivalidation.ValidateNamespaceName(*ref.Namespace, false)...)
		}
	case cluster:
		if ref.Namespace != nil {
			p.forbidden(at, "`parameters.scope` is set to 'Cluster'")
		}
	default:
		oneOf(p, path.Child("scope"), *ref.Scope, cluster, namespace)
	}
}
