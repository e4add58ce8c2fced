package endpointslicemirroring

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/even-keel/evenkeel/controllers/services"
)

// most is how many addresses of a subset are mirrored.
const most = 1000

// leader is an annotation of Endpoints by which programs elect their leader.
const leader = "control-plane.alpha.kubernetes.io/leader"

// seen is what there is of Endpoints. Its objects are shared and read-only.
type seen struct {
	// endpoints and service are nil unless both exist.
	endpoints *corev1.Endpoints
	service   *corev1.Service
	// slices are those that this controller manages.
	slices []*discoveryv1.EndpointSlice
}

// plan is what is to be done.
type plan struct {
	services.Changes
	// invalid and surplus are how many addresses are not mirrored.
	invalid, surplus int
}

// mirrored reports whether the Endpoints are to have slices.
func (s seen) mirrored() bool {
	if s.endpoints == nil || s.service == nil || s.service.Spec.Selector != nil {
		return false
	}
	_, elects := s.endpoints.Annotations[leader]
	return !elects && s.endpoints.Labels[discoveryv1.LabelSkipMirror] != "true"
}

// decide says which slices are to be made, changed and removed.
func decide(s seen) plan {
	if !s.mirrored() {
		return plan{Changes: services.Changes{Remove: s.slices}}
	}
	do, want := plan{}, services.Layout{Max: most, Like: s.like()}
	for _, subset := range s.endpoints.Subsets {
		do.mirror(subset, &want)
	}
	do.Changes = services.Arrange(s.slices, want)
	if s.endpoints.DeletionTimestamp != nil {
		do.Create = nil // the garbage collector is at work
	}
	return do
}

// like is what all slices have in common: what the Endpoints say of themselves.
func (s seen) like() *discoveryv1.EndpointSlice {
	prefix := s.endpoints.Name + "-"
	if len(prefix) > validation.DNS1123SubdomainMaxLength {
		prefix = s.endpoints.Name
	}
	out := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.endpoints.Namespace, GenerateName: prefix, Labels: map[string]string{}, Annotations: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.endpoints, corev1.SchemeGroupVersion.WithKind("Endpoints"))},
	}}
	maps.Copy(out.Labels, s.endpoints.Labels)
	out.Labels[discoveryv1.LabelServiceName], out.Labels[discoveryv1.LabelManagedBy] = s.endpoints.Name, manager
	maps.Copy(out.Annotations, s.endpoints.Annotations)
	delete(out.Annotations, corev1.EndpointsLastChangeTriggerTime)
	delete(out.Annotations, corev1.LastAppliedConfigAnnotation)
	return out
}

// mirror has the addresses of a subset be in slices, those that are ready first.
func (do *plan) mirror(subset corev1.EndpointSubset, want *services.Layout) {
	room, ports := most, portsOf(subset.Ports)
	for i, list := range [][]corev1.EndpointAddress{subset.Addresses, subset.NotReadyAddresses} {
		for _, a := range list {
			ip, family, ok := services.Address(a.IP)
			switch {
			case !ok:
				do.invalid++
			case room == 0:
				do.surplus++
			default:
				room--
				want.Add(discoveryv1.AddressType(family), ports, endpointOf(a, ip, i == 0))
			}
		}
	}
}

func portsOf(all []corev1.EndpointPort) []discoveryv1.EndpointPort {
	var out []discoveryv1.EndpointPort
	for _, p := range all {
		out = append(out, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol, AppProtocol: p.AppProtocol})
	}
	return out
}

func endpointOf(a corev1.EndpointAddress, ip string, ready bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{
		Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		TargetRef: a.TargetRef, NodeName: a.NodeName,
	}
	if a.Hostname != "" {
		e.Hostname = &a.Hostname
	}
	return e
}
