package endpointslice

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/even-keel/evenkeel/controllers/pods"
	"github.com/even-keel/evenkeel/controllers/services"
)

// most is how many endpoints a slice has.
const most = 100

// seen is what there is of a service. Its objects are shared and read-only.
type seen struct {
	service *corev1.Service
	// pods are those that it selects, nodes those of the pods, as far as they exist.
	pods  []*corev1.Pod
	nodes map[string]*corev1.Node
	// slices are those that this controller manages.
	slices  []*discoveryv1.EndpointSlice
	trigger services.Trigger
}

// decide says which slices are to be made, changed and removed.
func decide(s seen) services.Changes {
	if !services.Selects(s.service) {
		return services.Changes{Remove: s.slices}
	}
	want := services.Layout{Max: most, Like: s.like()}
	for _, family := range services.Families(s.service) {
		want.Empty = append(want.Empty, discoveryv1.AddressType(family))
		for _, p := range s.pods {
			if e, ok := s.endpoint(p, family); ok {
				want.Add(discoveryv1.AddressType(family), s.ports(p), e)
			}
		}
	}
	do := services.Arrange(s.slices, want)
	if s.service.DeletionTimestamp != nil {
		do.Create = nil // the garbage collector is at work
	}
	for _, slice := range slices.Concat(do.Create, do.Update) {
		slice.Annotations = s.trigger.Annotate(slice.Annotations)
	}
	return do
}

// like is what all slices of a service have in common.
func (s seen) like() *discoveryv1.EndpointSlice {
	prefix := s.service.Name + "-"
	if len(prefix) > validation.DNS1123SubdomainMaxLength {
		prefix = s.service.Name
	}
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.service.Namespace, GenerateName: prefix, Labels: s.labels(),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.service, corev1.SchemeGroupVersion.WithKind("Service"))},
	}}
}

// labels are those of the service, and those that are reserved.
func (s seen) labels() map[string]string {
	out := map[string]string{}
	maps.Copy(out, s.service.Labels)
	delete(out, corev1.IsHeadlessService)
	if services.Headless(s.service) {
		out[corev1.IsHeadlessService] = ""
	}
	out[discoveryv1.LabelServiceName], out[discoveryv1.LabelManagedBy] = s.service.Name, manager
	return out
}

// ports are those of the service that a pod has.
func (s seen) ports(p *corev1.Pod) []discoveryv1.EndpointPort {
	var out []discoveryv1.EndpointPort
	for i := range s.service.Spec.Ports {
		of := &s.service.Spec.Ports[i]
		if n, ok := services.Port(p, of); ok {
			out = append(out, discoveryv1.EndpointPort{Name: &of.Name, Port: &n, Protocol: &of.Protocol, AppProtocol: of.AppProtocol})
		}
	}
	return out
}

// endpoint is what a pod is for the service in a family, if it is anything. Pods on
// nodes that are not known are left out until these are, unless the service takes all
// that it can get.
func (s seen) endpoint(p *corev1.Pod, family corev1.IPFamily) (discoveryv1.Endpoint, bool) {
	addresses, node := services.Addresses(p, family), s.nodes[p.Spec.NodeName]
	if !services.Member(p) || len(addresses) == 0 || node == nil && !s.service.Spec.PublishNotReadyAddresses {
		return discoveryv1.Endpoint{}, false
	}
	serving, terminating := pods.Ready(p), p.DeletionTimestamp != nil
	ready := s.service.Spec.PublishNotReadyAddresses || serving && !terminating
	e := discoveryv1.Endpoint{
		Addresses:  addresses,
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		TargetRef:  services.Target(p),
		NodeName:   unlessEmpty(p.Spec.NodeName), Zone: unlessEmpty(zoneOf(node)), Hostname: unlessEmpty(services.Hostname(p, s.service)),
	}
	e.Hints = s.hints(e)
	return e, true
}

func unlessEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func zoneOf(node *corev1.Node) string {
	if node == nil {
		return ""
	}
	return node.Labels[corev1.LabelTopologyZone]
}

// hints tell for whom an endpoint that is ready is, if the service wants its traffic
// to stay near: for the zone it is in, and the node if that is wanted.
func (s seen) hints(e discoveryv1.Endpoint) *discoveryv1.EndpointHints {
	d := s.service.Spec.TrafficDistribution
	if d == nil || !*e.Conditions.Ready || s.byAnnotation() {
		return nil
	}
	var out discoveryv1.EndpointHints
	switch *d {
	case corev1.ServiceTrafficDistributionPreferSameNode:
		if e.NodeName != nil {
			out.ForNodes = []discoveryv1.ForNode{{Name: *e.NodeName}}
		}
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone:
	default:
		return nil
	}
	if e.Zone != nil {
		out.ForZones = []discoveryv1.ForZone{{Name: *e.Zone}}
	}
	if out.ForNodes == nil && out.ForZones == nil {
		return nil
	}
	return &out
}

// byAnnotation reports whether a service asks for hints in the older way, which goes
// before the newer.
func (s seen) byAnnotation() bool {
	mode, ok := s.service.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if !ok {
		mode = s.service.Annotations[corev1.AnnotationTopologyMode]
	}
	return strings.EqualFold(mode, "auto")
}
