package kinds

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func serviceKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("Service"),
		Resource: "services", Singular: "service",
		ShortNames: []string{"svc"}, Categories: []string{"all"},
		Namespaced: true,
		New:        newOf[corev1.Service], NewList: newOf[corev1.ServiceList],
		ValidName: apivalidation.NameIsDNSLabel,
		HasStatus: true, CreateOnUpdate: true, DeleteReturnsObject: true,
		Subresources: []Subresource{
			{Name: "proxy", GVK: corev1.SchemeGroupVersion.WithKind("ServiceProxyOptions"), Verbs: proxyVerbs()},
		},
		Default:        each(defaultService),
		PrepareCreate:  each(dropInternalPolicy),
		PrepareUpdate:  eachPair(dropTypeDependent),
		Validate:       check(validateService),
		ValidateCreate: check(func(s *corev1.Service) field.ErrorList { return validateServiceAddresses(s, nil) }),
		ValidateUpdate: checkPair(validateServiceUpdate),
		ValidateStatus: checkPair(validateServiceStatus),
		Warnings:       warn(serviceWarnings),
		Fields:         []string{"spec.clusterIP", "spec.type"},
		FieldSet: fieldSet(func(s *corev1.Service) fields.Set {
			return fields.Set{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
		}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Type", "How the service is reached."), column("Cluster-IP", "Address inside the cluster."),
			column("External-IP", "Addresses outside the cluster."), column("Port(s)", "Ports of the service."),
			ageColumn(), wideColumn("Selector", "Labels of the pods behind the service."),
		},
		Cells: cells(serviceCells),
	}
}

func defaultService(svc *corev1.Service) {
	s := &svc.Spec
	setEmpty(&s.SessionAffinity, corev1.ServiceAffinityNone)
	switch c := s.SessionAffinityConfig; {
	case s.SessionAffinity == corev1.ServiceAffinityNone:
		s.SessionAffinityConfig = nil
	case s.SessionAffinity == corev1.ServiceAffinityClientIP && (c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil):
		timeout := corev1.DefaultClientIPServiceAffinitySeconds
		s.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
	}
	setEmpty(&s.Type, corev1.ServiceTypeClusterIP)
	for i := range s.Ports {
		port := &s.Ports[i]
		setEmpty(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if reachableFromOutside(svc) {
		setEmpty(&s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	switch s.Type {
	case corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeClusterIP:
		setDefault(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if s.Type == corev1.ServiceTypeLoadBalancer {
		setDefault(&s.AllocateLoadBalancerNodePorts, true)
		for i := range svc.Status.LoadBalancer.Ingress {
			if in := &svc.Status.LoadBalancer.Ingress[i]; in.IP != "" {
				setDefault(&in.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
}

func reachableFromOutside(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer || s.Spec.Type == corev1.ServiceTypeNodePort ||
		s.Spec.Type == corev1.ServiceTypeClusterIP && len(s.Spec.ExternalIPs) > 0
}

// needsHealthPort: the load balancer asks each node whether it has pods.
func needsHealthPort(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func usesNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

func isExternalName(s *corev1.Service) bool { return s.Spec.Type == corev1.ServiceTypeExternalName }

func isHeadless(s *corev1.Service) bool {
	return len(s.Spec.ClusterIPs) == 1 && s.Spec.ClusterIPs[0] == corev1.ClusterIPNone
}

func samePointee[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func sameAddresses(a, b *corev1.Service) bool {
	return a.Spec.ClusterIP == b.Spec.ClusterIP && slices.Equal(a.Spec.ClusterIPs, b.Spec.ClusterIPs)
}

// dropTypeDependent wipes, when the type changes, what the old type wanted and
// the new one does not, unless the user changed that as well. It runs after
// [AllocateService].
func dropTypeDependent(svc, old *corev1.Service) {
	s, was := &svc.Spec, &old.Spec
	if !isExternalName(old) && isExternalName(svc) {
		if sameAddresses(old, svc) {
			s.ClusterIP, s.ClusterIPs = "", nil
		}
		if slices.Equal(was.IPFamilies, s.IPFamilies) {
			s.IPFamilies = nil
		}
		if samePointee(was.IPFamilyPolicy, s.IPFamilyPolicy) {
			s.IPFamilyPolicy = nil
		}
	}
	if usesNodePorts(old) && !usesNodePorts(svc) && !slices.ContainsFunc(s.Ports, func(p corev1.ServicePort) bool {
		return p.NodePort != 0 && !slices.Contains(nodePortsOf(old), p.NodePort)
	}) {
		for i := range s.Ports {
			s.Ports[i].NodePort = 0
		}
	}
	if needsHealthPort(old) && !needsHealthPort(svc) && s.HealthCheckNodePort == was.HealthCheckNodePort {
		s.HealthCheckNodePort = 0
	}
	if was.Type == corev1.ServiceTypeLoadBalancer && s.Type != corev1.ServiceTypeLoadBalancer {
		if samePointee(s.AllocateLoadBalancerNodePorts, was.AllocateLoadBalancerNodePorts) {
			s.AllocateLoadBalancerNodePorts = nil
		}
		if samePointee(s.LoadBalancerClass, was.LoadBalancerClass) {
			s.LoadBalancerClass = nil
		}
	}
	if reachableFromOutside(old) && !reachableFromOutside(svc) && s.ExternalTrafficPolicy == was.ExternalTrafficPolicy {
		s.ExternalTrafficPolicy = ""
	}
	if s.Type != corev1.ServiceTypeLoadBalancer {
		svc.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
	dropInternalPolicy(svc)
}

// dropInternalPolicy drops a good policy that means nothing for an external
// name; a bad one is for validation to tell.
func dropInternalPolicy(svc *corev1.Service) {
	if p := svc.Spec.InternalTrafficPolicy; isExternalName(svc) && p != nil &&
		(*p == corev1.ServiceInternalTrafficPolicyCluster || *p == corev1.ServiceInternalTrafficPolicyLocal) {
		svc.Spec.InternalTrafficPolicy = nil
	}
}

func nodePortsOf(s *corev1.Service) []int32 {
	var out []int32
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			out = append(out, p.NodePort)
		}
	}
	return out
}

func serviceWarnings(svc, _ *corev1.Service) []string {
	var out []string
	s, path := &svc.Spec, field.NewPath("spec")
	if _, ok := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; ok {
		out = append(out, fmt.Sprintf("annotation %s is deprecated, please use %s instead", corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode))
	}
	headless := s.Type == corev1.ServiceTypeClusterIP && s.ClusterIP == corev1.ClusterIPNone
	if s.ClusterIP != "" && s.ClusterIP != corev1.ClusterIPNone {
		for i, ip := range s.ClusterIPs {
			out = append(out, ipWarnings(path.Child("clusterIPs").Index(i), ip)...)
		}
	}
	warnIf := func(broken bool, text string) {
		if broken {
			out = append(out, text)
		}
	}
	warnIf(headless && s.LoadBalancerIP != "", "spec.loadBalancerIP is ignored for headless services")
	warnIf(headless && len(s.ExternalIPs) > 0, "spec.externalIPs is ignored for headless services")
	warnIf(headless && s.SessionAffinity != corev1.ServiceAffinityNone, "spec.SessionAffinity is ignored for headless services")
	for i, ip := range s.ExternalIPs {
		out = append(out, ipWarnings(path.Child("externalIPs").Index(i), ip)...)
	}
	warnIf(len(s.ExternalIPs) > 0 && !headless && !isExternalName(svc), "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	out = append(out, ipWarnings(path.Child("loadBalancerIP"), s.LoadBalancerIP)...)
	for i, cidr := range s.LoadBalancerSourceRanges {
		if validation.IsValidCIDRForLegacyField(nil, cidr, false, nil) == nil {
			out = append(out, validation.GetWarningsForCIDR(path.Child("loadBalancerSourceRanges").Index(i), cidr)...)
		}
	}
	warnIf(isExternalName(svc) && len(s.ExternalIPs) > 0, `spec.externalIPs is ignored when spec.type is "ExternalName"`)
	warnIf(!isExternalName(svc) && s.ExternalName != "", `spec.externalName is ignored when spec.type is not "ExternalName"`)
	warnIf(s.TrafficDistribution != nil && *s.TrafficDistribution == corev1.ServiceTrafficDistributionPreferClose,
		fmt.Sprintf("spec.trafficDistribution: %q is deprecated; use %q", corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone))
	return out
}

// ipWarnings tells of odd forms of an address; what is no address at all is for
// validation to tell.
func ipWarnings(path *field.Path, ip string) []string {
	if len(validation.IsValidIPForLegacyField(nil, ip, false, nil)) > 0 {
		return nil
	}
	return validation.GetWarningsForIP(path, ip)
}

func serviceCells(s *corev1.Service, now metav1.Time) []any {
	ip := "<none>"
	if len(s.Spec.ClusterIPs) > 0 {
		ip = s.Spec.ClusterIPs[0]
	}
	return []any{s.Name, string(s.Spec.Type), ip, serviceOutside(s), orElse(servicePortText(s.Spec.Ports), "<none>"),
		Age(s.CreationTimestamp, now), labels.FormatLabels(s.Spec.Selector)}
}

func servicePortText(ports []corev1.ServicePort) string {
	out := make([]string, len(ports))
	for i, p := range ports {
		out[i] = fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.NodePort > 0 {
			out[i] = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		}
	}
	return strings.Join(out, ",")
}

// serviceOutside is where the service is reached from outside.
func serviceOutside(s *corev1.Service) string {
	given := strings.Join(s.Spec.ExternalIPs, ",")
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return orElse(given, "<none>")
	case corev1.ServiceTypeLoadBalancer:
		out := loadBalancerAddresses(s.Status.LoadBalancer.Ingress)
		if given != "" {
			out = append(out, given)
		}
		return orElse(strings.Join(out, ","), "<pending>")
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	}
	return "<unknown>"
}

func loadBalancerAddresses(ingress []corev1.LoadBalancerIngress) []string {
	var out []string
	for _, in := range ingress {
		if at := orElse(in.IP, in.Hostname); at != "" {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
