package kinds

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func networkKinds() []*Kind {
	return []*Kind{
		ingressClassKind(), ingressKind(), ipAddressKind(), networkPolicyKind(), serviceCIDRKind(),
	}
}

// ingressClassAnnotation named the class before there was a field for it.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

func ingressKind() *Kind {
	return &Kind{
		GVK:        networkingv1.SchemeGroupVersion.WithKind("Ingress"),
		Resource:   "ingresses",
		Singular:   "ingress",
		ShortNames: []string{"ing"},
		Namespaced: true,
		New:        newOf[networkingv1.Ingress],
		NewList:    newOf[networkingv1.IngressList],

		HasStatus:     true,
		HasGeneration: true,

		Validate:       check(validateIngress),
		ValidateCreate: check(validateIngressCreate),
		ValidateStatus: checkPair(validateIngressStatus),
		Warnings:       warn(warnIngress),

		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Class", "The ingress class that serves it."),
			column("Hosts", "Hosts that requests are matched against."),
			column("Address", "Addresses of the load balancer."),
			column("Ports", "Ports of the TLS configurations and of plain HTTP."),
			ageColumn(),
		},
		Cells: cells(func(i *networkingv1.Ingress, now metav1.Time) []any {
			class := "<none>"
			if i.Spec.IngressClassName != nil {
				class = *i.Spec.IngressClassName
			}
			ports := "80"
			if len(i.Spec.TLS) > 0 {
				ports = "80, 443"
			}
			return []any{
				i.Name, class, ingressHosts(i.Spec.Rules), ingressAddresses(i), ports,
				Age(i.CreationTimestamp, now),
			}
		}),
	}
}

func ingressClassKind() *Kind {
	return &Kind{
		GVK:      networkingv1.SchemeGroupVersion.WithKind("IngressClass"),
		Resource: "ingressclasses",
		Singular: "ingressclass",
		New:      newOf[networkingv1.IngressClass],
		NewList:  newOf[networkingv1.IngressClassList],

		HasGeneration: true,

		Default: each(func(c *networkingv1.IngressClass) {
			if c.Spec.Parameters != nil {
				setDefault(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
			}
		}),

		Validate:       check(validateIngressClass),
		ValidateUpdate: checkPair(validateIngressClassUpdate),

		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Controller", "Name of the controller that serves the class."),
			column("Parameters", "An object with further settings."),
			ageColumn(),
		},
		Cells: cells(func(c *networkingv1.IngressClass, now metav1.Time) []any {
			return []any{
				c.Name, c.Spec.Controller, ingressClassParameters(c.Spec.Parameters),
				Age(c.CreationTimestamp, now),
			}
		}),
	}
}

func ingressClassParameters(ref *networkingv1.IngressClassParametersReference) string {
	if ref == nil {
		return "<none>"
	}
	kind := ref.Kind
	if ref.APIGroup != nil {
		kind += "." + *ref.APIGroup
	}
	return kind + "/" + ref.Name
}

// ingressHosts shows at most three hosts.
func ingressHosts(rules []networkingv1.IngressRule) string {
	const most = 3
	var hosts []string
	more := false
	for _, r := range rules {
		if len(hosts) == most {
			more = true
			break
		}
		if r.Host != "" {
			hosts = append(hosts, r.Host)
		}
	}
	if len(hosts) == 0 {
		return "*"
	}
	shown := strings.Join(hosts, ",")
	if more {
		return fmt.Sprintf("%s + %d more...", shown, len(rules)-most)
	}
	return shown
}

func ingressAddresses(i *networkingv1.Ingress) string {
	var addresses []string
	for _, in := range i.Status.LoadBalancer.Ingress {
		if a := orElse(in.IP, in.Hostname); a != "" {
			addresses = append(addresses, a)
		}
	}
	slices.Sort(addresses)
	return strings.Join(slices.Compact(addresses), ",")
}

func warnIngress(i, old *networkingv1.Ingress) []string {
	if _, set := i.Annotations[ingressClassAnnotation]; old != nil || !set || i.Spec.IngressClassName != nil {
		return nil
	}
	return []string{fmt.Sprintf("annotation %q is deprecated, please use 'spec.ingressClassName' instead", ingressClassAnnotation)}
}
