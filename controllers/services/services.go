// Package services is what the controllers of endpoints have in common: which pods
// serve for a service, at which addresses and ports, and how endpoints are put into
// EndpointSlices so that few of these are written.
package services

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	netutils "k8s.io/utils/net"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/pods"
)

// Selects reports whether the endpoints of a service are the pods that it selects;
// those of others are for somebody else to say.
func Selects(s *corev1.Service) bool {
	return s.Spec.Selector != nil && s.Spec.Type != corev1.ServiceTypeExternalName
}

// Headless reports whether a service has no address of its own.
func Headless(s *corev1.Service) bool {
	return s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone
}

// Of returns the keys of the services that select a pod, or of none on an error.
func Of(ctx context.Context, services *client.Client[*corev1.Service], pod *corev1.Pod) []client.Key {
	var out []client.Key
	for s, err := range services.In(pod.Namespace).List(ctx) {
		if err != nil {
			return out // the controller ends
		}
		if Selects(s) && selector(s).Matches(labels.Set(pod.Labels)) {
			out = append(out, client.KeyOf(s))
		}
	}
	return out
}

// Pods returns the pods that a service selects, in the order of their names.
func Pods(ctx context.Context, all *client.Client[*corev1.Pod], s *corev1.Service) ([]*corev1.Pod, error) {
	var out []*corev1.Pod
	for p, err := range all.In(s.Namespace).List(ctx, client.Selector(selector(s))) {
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func selector(s *corev1.Service) labels.Selector {
	return labels.SelectorFromSet(s.Spec.Selector)
}

// Concerns leaves out changes of pods that make no difference to endpoints. It is
// for controller.Where.
func Concerns(old, now *corev1.Pod) bool {
	if old == nil || now == nil {
		return true
	}
	return !labels.Equals(old.Labels, now.Labels) ||
		old.Spec.NodeName != now.Spec.NodeName ||
		(old.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
		pods.Ended(old) != pods.Ended(now) || pods.Ready(old) != pods.Ready(now) ||
		!equality.Semantic.DeepEqual(old.Status.PodIPs, now.Status.PodIPs)
}

// Member reports whether a pod that a service selects has an address, and has not
// come to its end.
func Member(p *corev1.Pod) bool { return !pods.Ended(p) && len(p.Status.PodIPs) > 0 }

// Addresses are those of a pod in a family, in their usual form.
func Addresses(p *corev1.Pod, family corev1.IPFamily) []string {
	var out []string
	for _, ip := range p.Status.PodIPs {
		if a, of, ok := Address(ip.IP); ok && of == family {
			out = append(out, a)
		}
	}
	return out
}

// Address is an address in its usual form, and its family. It is false of what is no
// address.
func Address(text string) (string, corev1.IPFamily, bool) {
	ip := netutils.ParseIPSloppy(text)
	switch {
	case ip == nil:
		return "", "", false
	case ip.To4() != nil:
		return ip.String(), corev1.IPv4Protocol, true
	}
	return ip.String(), corev1.IPv6Protocol, true
}

// Families are those in which a service has endpoints.
func Families(s *corev1.Service) []corev1.IPFamily {
	if len(s.Spec.IPFamilies) > 0 {
		return s.Spec.IPFamilies
	}
	if _, family, ok := Address(s.Spec.ClusterIP); ok {
		return []corev1.IPFamily{family}
	}
	return []corev1.IPFamily{corev1.IPv4Protocol}
}

// Hostname is the name that a pod has in the domain of a service, "" if it has none.
func Hostname(p *corev1.Pod, s *corev1.Service) string {
	if p.Spec.Subdomain != s.Name {
		return ""
	}
	return p.Spec.Hostname
}

// Target refers to a pod.
func Target(p *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

// Port is where a pod serves a port of a service; it is false of pods that have no
// port of the name that the service says.
func Port(p *corev1.Pod, of *corev1.ServicePort) (int32, bool) {
	if of.TargetPort.Type == intstr.Int {
		return of.TargetPort.IntVal, true
	}
	if n, ok := named(p.Spec.Containers, of); ok {
		return n, true
	}
	return named(slices.DeleteFunc(slices.Clone(p.Spec.InitContainers), func(c corev1.Container) bool { return !sidecar(c) }), of)
}

func named(containers []corev1.Container, of *corev1.ServicePort) (int32, bool) {
	for _, c := range containers {
		for _, port := range c.Ports {
			if port.Name == of.TargetPort.StrVal && port.Protocol == of.Protocol {
				return port.ContainerPort, true
			}
		}
	}
	return 0, false
}

func sidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
