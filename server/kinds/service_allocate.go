package kinds

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	serviceGroupKind      = schema.GroupKind{Kind: "Service"}
	serviceIPFamilyPolicy = field.NewPath("spec", "ipFamilyPolicy")
)

// ServicePool hands out what services need, of one address family.
type ServicePool struct {
	Family corev1.IPFamily
	// IP takes the address wanted, or any one for "".
	IP func(want string) (string, error)
	// Port takes the node port wanted, or any one for 0.
	Port func(want int32) (int32, error)
}

// ServiceClaims are addresses and node ports that a service holds.
type ServiceClaims struct {
	IPs   []string
	Ports []int32
}

// AllocateService takes from the pool what svc needs and old, nil on create,
// does not hold yet, and fills in the fields that follow from it. The order of a
// request is: Default, AllocateService, PrepareCreate or PrepareUpdate,
// validation. Whatever fails, here or later, the caller gives back the claims
// returned; when the write succeeds, it gives back [ReleaseService]. For a dry
// run, the pool takes nothing.
//
// The error is a Status.
func AllocateService(svc, old *corev1.Service, pool ServicePool) (ServiceClaims, error) {
	if old != nil {
		keepAllocated(svc, old)
	}
	syncClusterIPs(svc, old)
	if errs := initFamilies(svc, old, pool.Family); len(errs) > 0 {
		return ServiceClaims{}, apierrors.NewInvalid(serviceGroupKind, svc.Name, errs)
	}
	a := &serviceAllocation{svc: svc, pool: pool}
	if err := a.addresses(old); err != nil {
		return a.taken, err
	}
	if err := a.nodePorts(old); err != nil {
		return a.taken, err
	}
	return a.taken, a.healthPort(old)
}

// ReleaseService returns what old held and now, nil after a delete, does not.
func ReleaseService(old, now *corev1.Service) ServiceClaims {
	held, kept := HeldByService(old), HeldByService(now)
	return ServiceClaims{
		IPs:   slices.DeleteFunc(held.IPs, func(ip string) bool { return slices.Contains(kept.IPs, ip) }),
		Ports: slices.DeleteFunc(held.Ports, func(port int32) bool { return slices.Contains(kept.Ports, port) }),
	}
}

// HeldByService returns what a stored service, which may be nil, holds. A server
// asks all services when it starts.
func HeldByService(svc *corev1.Service) ServiceClaims {
	var out ServiceClaims
	if svc == nil {
		return out
	}
	if !isExternalName(svc) && !isHeadless(svc) {
		out.IPs = slices.Clone(svc.Spec.ClusterIPs)
	}
	out.Ports = nodePortsOf(svc)
	if needsHealthPort(svc) && svc.Spec.HealthCheckNodePort > 0 {
		out.Ports = append(out.Ports, svc.Spec.HealthCheckNodePort)
	}
	slices.Sort(out.Ports)
	out.Ports = slices.Compact(out.Ports)
	return out
}

// keepAllocated fills in from old what clients may leave out.
func keepAllocated(svc, old *corev1.Service) {
	s, was := &svc.Spec, &old.Spec
	if !isExternalName(svc) && !isExternalName(old) {
		setEmpty(&s.ClusterIP, was.ClusterIP)
		if len(s.ClusterIPs) == 0 {
			s.ClusterIPs = slices.Clone(was.ClusterIPs)
		}
	}
	if allocatesNodePorts(svc) && allocatesNodePorts(old) {
		keepNodePorts(s.Ports, was.Ports)
	}
	if needsHealthPort(svc) && needsHealthPort(old) {
		setEmpty(&s.HealthCheckNodePort, was.HealthCheckNodePort)
	}
}

func allocatesNodePorts(s *corev1.Service) bool {
	wanted := s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer && wanted
}

// keepNodePorts gives ports without a node port the one of the old port of the
// same name, unless another port has it now.
func keepNodePorts(ports, old []corev1.ServicePort) {
	used, named := map[int32]bool{}, map[string]int32{}
	for _, p := range old {
		named[p.Name] = p.NodePort
	}
	for _, p := range ports {
		if p.NodePort != 0 {
			used[p.NodePort] = true
		}
	}
	for i := range ports {
		if before := named[ports[i].Name]; ports[i].NodePort == 0 && !used[before] {
			ports[i].NodePort = before
		}
	}
}

// syncClusterIPs makes clusterIPs follow clusterIP for clients that know only
// the latter.
func syncClusterIPs(svc, old *corev1.Service) {
	s := &svc.Spec
	if old == nil {
		if s.ClusterIP != "" && len(s.ClusterIPs) == 0 {
			s.ClusterIPs = []string{s.ClusterIP}
		}
		return
	}
	was := &old.Spec
	same := slices.Equal(s.ClusterIPs, was.ClusterIPs)
	switch {
	case s.ClusterIP == was.ClusterIP:
		if len(s.ClusterIPs) == 0 {
			s.ClusterIPs = slices.Clone(was.ClusterIPs)
		}
	case s.ClusterIP == "" && same:
		s.ClusterIPs = nil
	case s.ClusterIP != "" && same:
		s.ClusterIPs = []string{s.ClusterIP}
	}
}

// initFamilies fills in ipFamilyPolicy and ipFamilies on a cluster that has one
// family.
func initFamilies(svc, old *corev1.Service, family corev1.IPFamily) field.ErrorList {
	if isExternalName(svc) || prefersAsBefore(svc, old) {
		return nil
	}
	s := &svc.Spec
	loose := s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0
	if s.IPFamilyPolicy == nil {
		policy := corev1.IPFamilyPolicySingleStack
		switch {
		case old != nil && old.Spec.IPFamilyPolicy != nil:
			policy = *old.Spec.IPFamilyPolicy
		case loose:
			policy = corev1.IPFamilyPolicyRequireDualStack
		}
		s.IPFamilyPolicy = &policy
	}
	if errs := validateClusterIPs(svc, old); len(errs) > 0 {
		return errs
	}
	p := &problems{}
	p.stackAgrees(svc, old)
	p.inferFamilies(s, family)
	if len(p.list) > 0 {
		return p.list
	}
	if loose {
		looseFamilies(s, family)
		return nil
	}
	if *s.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack {
		p.invalid(serviceIPFamilyPolicy, *s.IPFamilyPolicy, "this cluster is not configured for dual-stack services")
	}
	for i, f := range s.IPFamilies {
		if f != family {
			p.invalid(field.NewPath("spec", "ipFamilies").Index(i), f, "not configured on this cluster")
		}
	}
	if len(p.list) == 0 && len(s.IPFamilies) == 0 {
		s.IPFamilies = []corev1.IPFamily{family}
	}
	return p.list
}

// prefersAsBefore: a service that prefers two families and has not been changed
// stays as it is, whatever the cluster has now.
func prefersAsBefore(svc, old *corev1.Service) bool {
	prefer := corev1.IPFamilyPolicyPreferDualStack
	return old != nil && svc.Spec.IPFamilyPolicy != nil && *svc.Spec.IPFamilyPolicy == prefer && old.Spec.Type == svc.Spec.Type &&
		(usesNodePorts(svc) || svc.Spec.Type == corev1.ServiceTypeClusterIP) &&
		(old.Spec.IPFamilyPolicy == nil || *old.Spec.IPFamilyPolicy == prefer) &&
		slices.Equal(svc.Spec.ClusterIPs, old.Spec.ClusterIPs) && slices.Equal(svc.Spec.IPFamilies, old.Spec.IPFamilies)
}

// stackAgrees checks the policy against the number of addresses and families. A
// single-stack policy on an update that keeps both of them drops the second.
func (p *problems) stackAgrees(svc, old *corev1.Service) {
	s := &svc.Spec
	single := *s.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	if old != nil && single {
		if len(s.ClusterIPs) > 1 && slices.Equal(s.ClusterIPs, old.Spec.ClusterIPs) {
			s.ClusterIPs = s.ClusterIPs[:1]
		}
		if len(s.IPFamilies) > 1 && slices.Equal(s.IPFamilies, old.Spec.IPFamilies) {
			s.IPFamilies = s.IPFamilies[:1]
		}
	}
	if old != nil && !single {
		if n := len(s.ClusterIPs); n > 0 && n < len(old.Spec.ClusterIPs) {
			p.invalid(serviceIPFamilyPolicy, *s.IPFamilyPolicy, "must be 'SingleStack' to release the secondary cluster IP")
		}
		if n := len(s.IPFamilies); n > 0 && n < len(old.Spec.IPFamilies) {
			p.invalid(serviceIPFamilyPolicy, *s.IPFamilyPolicy, "must be 'SingleStack' to release the secondary IP family")
		}
	}
	if single && len(s.ClusterIPs) == 2 {
		p.invalid(serviceIPFamilyPolicy, *s.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified")
	}
	if single && len(s.IPFamilies) == 2 {
		p.invalid(serviceIPFamilyPolicy, *s.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified")
	}
}

// inferFamilies adds the families of the addresses that are given.
func (p *problems) inferFamilies(s *corev1.ServiceSpec, family corev1.IPFamily) {
	for i, ip := range s.ClusterIPs {
		if ip == corev1.ClusterIPNone {
			return
		}
		f := corev1.IPv4Protocol
		if isIPv6Text(ip) {
			f = corev1.IPv6Protocol
		}
		switch {
		case i < len(s.IPFamilies):
		case f != family:
			p.invalid(field.NewPath("spec", "clusterIPs").Index(i), s.ClusterIPs, fmt.Sprintf("%s is not configured on this cluster", f))
		default:
			s.IPFamilies = append(s.IPFamilies, f)
		}
	}
}

// looseFamilies are those of a headless service without a selector, whose
// endpoints are the user's: both, unless told otherwise.
func looseFamilies(s *corev1.ServiceSpec, family corev1.IPFamily) {
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []corev1.IPFamily{family}
	}
	if len(s.IPFamilies) > 1 || *s.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		return
	}
	other := corev1.IPv6Protocol
	if s.IPFamilies[0] == other {
		other = corev1.IPv4Protocol
	}
	s.IPFamilies = append(s.IPFamilies, other)
}
