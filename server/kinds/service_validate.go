package kinds

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const onlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'"

var portProtocols = []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}

func validateService(svc *corev1.Service) field.ErrorList {
	p, s, path := &problems{}, &svc.Spec, field.NewPath("spec")
	p.topologyAnnotations(svc)
	if len(s.Ports) == 0 && !isHeadless(svc) && !isExternalName(svc) {
		p.required(path.Child("ports"), "")
	}
	p.serviceByType(path, svc)
	names := seen{}
	for i := range s.Ports {
		p.servicePort(path.Child("ports").Index(i), &s.Ports[i], len(s.Ports) > 1, names)
	}
	p.add(metavalidation.ValidateLabels(s.Selector, path.Child("selector"))...)
	p.sessionAffinity(path, s)
	chosen(p, path.Child("type"), s.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)
	p.nodePorts(path.Child("ports"), s)
	p.duplicatePorts(path.Child("ports"), s.Ports)
	p.loadBalancerFields(path, svc)
	p.trafficPolicies(path, svc)
	return p.list
}

func (p *problems) topologyAnnotations(svc *corev1.Service) {
	hints, old := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	mode, now := svc.Annotations[corev1.AnnotationTopologyMode]
	if old && now && hints != mode {
		p.invalid(field.NewPath("metadata", "annotations").Key(corev1.AnnotationTopologyMode), mode,
			fmt.Sprintf("must match annotations[%s] when both are specified", corev1.DeprecatedAnnotationTopologyAwareHints))
	}
}

func (p *problems) serviceByType(path *field.Path, svc *corev1.Service) {
	s := &svc.Spec
	switch s.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		if isHeadless(svc) {
			p.invalid(path.Child("clusterIPs").Index(0), s.ClusterIPs[0], fmt.Sprintf("may not be set to 'None' for %s services", s.Type))
		}
	case corev1.ServiceTypeExternalName:
		for name, set := range map[string]bool{"clusterIPs": len(s.ClusterIPs) > 0, "ipFamilies": len(s.IPFamilies) > 0, "ipFamilyPolicy": s.IPFamilyPolicy != nil} {
			if set {
				p.forbidden(path.Child(name), "may not be set for ExternalName services")
			}
		}
		if name := strings.TrimSuffix(s.ExternalName, "."); name == "" {
			p.required(path.Child("externalName"), "")
		} else {
			p.invalid(path.Child("externalName"), name, validation.IsDNS1123Subdomain(name)...)
		}
	}
}

func (p *problems) servicePort(path *field.Path, port *corev1.ServicePort, needsName bool, names seen) {
	switch {
	case port.Name != "":
		p.invalid(path.Child("name"), port.Name, validation.IsDNS1123Label(port.Name)...)
		if names.again(port.Name) {
			p.duplicate(path.Child("name"), port.Name)
		}
	case needsName:
		p.required(path.Child("name"), "")
	}
	p.invalid(path.Child("port"), port.Port, validation.IsValidPortNum(int(port.Port))...)
	chosen(p, path.Child("protocol"), port.Protocol, portProtocols...)
	target := path.Child("targetPort")
	if port.TargetPort.Type == intstr.Int {
		p.invalid(target, port.TargetPort.IntVal, validation.IsValidPortNum(port.TargetPort.IntValue())...)
	} else {
		p.invalid(target, port.TargetPort.StrVal, validation.IsValidPortName(port.TargetPort.StrVal)...)
	}
	if port.AppProtocol != nil {
		p.invalid(path.Child("appProtocol"), *port.AppProtocol, validation.IsQualifiedName(*port.AppProtocol)...)
	}
}

func (p *problems) sessionAffinity(path *field.Path, s *corev1.ServiceSpec) {
	chosen(p, path.Child("sessionAffinity"), s.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	config, c := path.Child("sessionAffinityConfig"), s.SessionAffinityConfig
	switch s.SessionAffinity {
	case corev1.ServiceAffinityNone:
		if c != nil {
			p.forbidden(config, "must not be set when session affinity is None")
		}
	case corev1.ServiceAffinityClientIP:
		const missing = "when session affinity type is ClientIP"
		switch {
		case c == nil:
			p.required(config, missing)
		case c.ClientIP == nil:
			p.required(config.Child("clientIP"), missing)
		case c.ClientIP.TimeoutSeconds == nil:
			p.required(config.Child("clientIP", "timeoutSeconds"), missing)
		case *c.ClientIP.TimeoutSeconds <= 0 || *c.ClientIP.TimeoutSeconds > 86400:
			p.invalid(config.Child("clientIP", "timeoutSeconds"), *c.ClientIP.TimeoutSeconds, "must be greater than 0 and less than 86400")
		}
	}
}

func (p *problems) nodePorts(path *field.Path, s *corev1.ServiceSpec) {
	used := map[string]bool{}
	for i, port := range s.Ports {
		if port.NodePort == 0 {
			continue
		}
		at, key := path.Index(i).Child("nodePort"), fmt.Sprint(port.Protocol, port.NodePort)
		if s.Type == corev1.ServiceTypeClusterIP {
			p.forbidden(at, "may not be used when `type` is 'ClusterIP'")
		}
		if used[key] {
			p.duplicate(at, port.NodePort)
		}
		used[key] = true
	}
}

// shownServicePort is a port as errors quote it: with the names of the Go fields.
type shownServicePort struct {
	Name        string
	Protocol    corev1.Protocol
	AppProtocol *string
	Port        int32
	TargetPort  intstr.IntOrString
	NodePort    int32
}

func (p *problems) duplicatePorts(path *field.Path, ports []corev1.ServicePort) {
	used := map[shownServicePort]bool{}
	for i, port := range ports {
		key := shownServicePort{Protocol: port.Protocol, Port: port.Port}
		if used[key] {
			p.duplicate(path.Index(i), key)
		}
		used[key] = true
	}
}

func (p *problems) loadBalancerFields(path *field.Path, svc *corev1.Service) {
	s, balanced := &svc.Spec, svc.Spec.Type == corev1.ServiceTypeLoadBalancer
	_, annotated := svc.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]
	if len(s.LoadBalancerSourceRanges) > 0 {
		if !balanced {
			p.forbidden(path.Child("LoadBalancerSourceRanges"), onlyLoadBalancer)
		}
	} else if annotated && !balanced {
		p.forbidden(field.NewPath("metadata", "annotations").Key(corev1.AnnotationLoadBalancerSourceRangesKey), onlyLoadBalancer)
	}
	switch {
	case s.AllocateLoadBalancerNodePorts != nil && !balanced:
		p.forbidden(path.Child("allocateLoadBalancerNodePorts"), onlyLoadBalancer)
	case s.AllocateLoadBalancerNodePorts == nil && balanced:
		p.required(field.NewPath("allocateLoadBalancerNodePorts"), "")
	}
	p.loadBalancerClass(path.Child("loadBalancerClass"), s)
}

func (p *problems) loadBalancerClass(path *field.Path, s *corev1.ServiceSpec) {
	switch {
	case s.LoadBalancerClass == nil:
	case s.Type == corev1.ServiceTypeLoadBalancer:
		p.invalid(path, *s.LoadBalancerClass, validation.IsQualifiedName(*s.LoadBalancerClass)...)
	default:
		p.forbidden(path, onlyLoadBalancer)
	}
}

func (p *problems) trafficPolicies(path *field.Path, svc *corev1.Service) {
	s, external, health := &svc.Spec, path.Child("externalTrafficPolicy"), path.Child("healthCheckNodePort")
	if reachableFromOutside(svc) {
		chosen(p, external, s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	} else if s.ExternalTrafficPolicy != "" {
		p.invalid(external, s.ExternalTrafficPolicy, "may only be set for externally-accessible services")
	}
	switch {
	case !needsHealthPort(svc) && s.HealthCheckNodePort != 0:
		p.invalid(health, s.HealthCheckNodePort, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
	case needsHealthPort(svc) && s.HealthCheckNodePort == 0:
		p.required(health, "")
	case needsHealthPort(svc):
		p.invalid(health, s.HealthCheckNodePort, validation.IsValidPortNum(int(s.HealthCheckNodePort))...)
	}
	internal := path.Child("internalTrafficPolicy")
	if s.InternalTrafficPolicy != nil {
		oneOf(p, internal, *s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)
	} else if usesNodePorts(svc) || s.Type == corev1.ServiceTypeClusterIP {
		p.required(internal, "")
	}
	if s.TrafficDistribution != nil {
		oneOf(p, path.Child("trafficDistribution"), *s.TrafficDistribution, corev1.ServiceTrafficDistributionPreferClose,
			corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)
	}
}

// validateServiceAddresses checks the addresses of a service; those that old,
// which may be nil, had already are not held to today's rules.
func validateServiceAddresses(svc, old *corev1.Service) field.ErrorList {
	p, s, path := &problems{}, &svc.Spec, field.NewPath("spec")
	var was corev1.ServiceSpec
	if old != nil {
		was = old.Spec
	}
	p.add(validateClusterIPs(svc, old)...)
	for i, ip := range s.ExternalIPs {
		at := path.Child("externalIPs").Index(i)
		if errs := validation.IsValidIPForLegacyField(at, ip, true, was.ExternalIPs); len(errs) > 0 {
			p.add(errs...)
		} else {
			p.endpointIP(at, ip)
		}
	}
	var known []string
	for _, r := range was.LoadBalancerSourceRanges {
		known = append(known, strings.TrimSpace(r))
	}
	for i, r := range s.LoadBalancerSourceRanges {
		p.add(validation.IsValidCIDRForLegacyField(path.Child("LoadBalancerSourceRanges").Index(i), strings.TrimSpace(r), true, known)...)
	}
	key := corev1.AnnotationLoadBalancerSourceRangesKey
	ranges := strings.TrimSpace(svc.Annotations[key])
	if len(s.LoadBalancerSourceRanges) > 0 || ranges == "" || old != nil && old.Annotations[key] == svc.Annotations[key] {
		return p.list
	}
	for r := range strings.SplitSeq(ranges, ",") {
		p.add(validation.IsValidCIDRForLegacyField(field.NewPath("metadata", "annotations").Key(key), strings.TrimSpace(r), true, nil)...)
	}
	return p.list
}

// endpointIP refuses addresses that mean something else on every host.
func (p *problems) endpointIP(path *field.Path, text string) {
	ip, ok := parseSloppyIP(text)
	switch {
	case !ok:
		p.invalid(path, text, "must be a valid IP address")
	case ip.IsUnspecified():
		p.invalid(path, text, fmt.Sprintf("may not be unspecified (%v)", text))
	case ip.IsLoopback():
		p.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
	case ip.IsLinkLocalUnicast():
		p.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
	case ip.IsLinkLocalMulticast():
		p.invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
	}
}

// parseSloppyIP reads an address; a number in it may start with zeros.
func parseSloppyIP(text string) (netip.Addr, bool) {
	parts := strings.Split(text, ".")
	if len(parts) == 4 && !strings.Contains(text, ":") {
		for i, n := range parts {
			if trimmed := strings.TrimLeft(n, "0"); n != "" {
				parts[i] = orElse(trimmed, "0")
			}
		}
		text = strings.Join(parts, ".")
	}
	ip, err := netip.ParseAddr(text)
	return ip.Unmap(), err == nil && ip.Zone() == ""
}

func isIPv6Text(text string) bool {
	ip, ok := parseSloppyIP(text)
	return ok && ip.Is6()
}

func validateServiceUpdate(svc, old *corev1.Service) field.ErrorList {
	p, path := &problems{}, field.NewPath("spec")
	if !isExternalName(svc) && !isExternalName(old) {
		p.clusterIPsKept(path, svc, old)
		p.familiesKept(path, svc, old)
	}
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer && old.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		!samePointee(svc.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass) {
		p.invalid(path.Child("loadBalancerClass"), svc.Spec.LoadBalancerClass, "may not change once set")
	}
	p.loadBalancerClass(path.Child("loadBalancerClass"), &svc.Spec)
	if needsHealthPort(svc) && needsHealthPort(old) && svc.Spec.HealthCheckNodePort != old.Spec.HealthCheckNodePort {
		p.forbidden(path.Child("healthCheckNodePort"), "field is immutable")
	}
	p.add(validateServiceAddresses(svc, old)...)
	return p.list
}

// clusterIPsKept allows a second address to come and go, the first one not.
func (p *problems) clusterIPsKept(path *field.Path, svc, old *corev1.Service) {
	if isHeadless(svc) && isHeadless(old) {
		return
	}
	at, now, was := path.Child("clusterIPs"), svc.Spec.ClusterIPs, old.Spec.ClusterIPs
	if len(now) == len(was) {
		for i := range was {
			if now[i] != was[i] {
				p.invalid(at.Index(i), now, "may not change once set")
			}
		}
		return
	}
	if len(now) == 0 {
		p.invalid(at.Index(0), now, "primary clusterIP can not be unset")
	}
	if len(now) > 0 && len(was) > 0 && now[0] != was[0] {
		p.invalid(at.Index(0), now, "may not change once set")
	}
	if len(now) == 1 && len(was) > 1 {
		p.singleStack(path, svc, "must be set to 'SingleStack' when releasing the secondary clusterIP")
	}
}

func (p *problems) singleStack(path *field.Path, svc *corev1.Service, detail string) {
	if policy := svc.Spec.IPFamilyPolicy; policy == nil || *policy != corev1.IPFamilyPolicySingleStack {
		p.invalid(path.Child("ipFamilyPolicy"), policy, detail)
	}
}

func (p *problems) familiesKept(path *field.Path, svc, old *corev1.Service) {
	if isHeadless(svc) || isHeadless(old) {
		return
	}
	at, now, was := path.Child("ipFamilies").Index(0), svc.Spec.IPFamilies, old.Spec.IPFamilies
	if len(now) == len(was) {
		for i := range was {
			if now[i] != was[i] {
				p.invalid(at, now, "may not change once set")
			}
		}
		return
	}
	if len(now) < len(was) && len(svc.Spec.ClusterIPs) == 0 {
		p.invalid(at, now, "primary ipFamily can not be unset")
	}
	if len(now) > 0 && len(was) > 0 && now[0] != was[0] {
		p.invalid(at, svc.Spec.ClusterIPs, "may not change once set")
	}
	if len(now) == 1 && len(was) > 1 {
		p.singleStack(path, svc, "must be set to 'SingleStack' when releasing the secondary ipFamily")
	}
}

func validateServiceStatus(svc, old *corev1.Service) field.ErrorList {
	p, path := &problems{}, field.NewPath("status", "loadBalancer", "ingress")
	ingress := svc.Status.LoadBalancer.Ingress
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer && len(ingress) > 0 {
		p.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
		return p.list
	}
	var known []string
	for _, in := range old.Status.LoadBalancer.Ingress {
		known = append(known, in.IP)
	}
	known = slices.DeleteFunc(known, func(ip string) bool { return ip == "" })
	for i := range ingress {
		p.loadBalancerIngress(path.Index(i), &ingress[i], known)
	}
	return p.list
}

func (p *problems) loadBalancerIngress(path *field.Path, in *corev1.LoadBalancerIngress, known []string) {
	if in.IP != "" {
		p.add(validation.IsValidIPForLegacyField(path.Child("ip"), in.IP, true, known)...)
	}
	switch mode := path.Child("ipMode"); {
	case in.IPMode == nil:
		if in.IP != "" {
			p.required(mode, "must be specified when `ip` is set")
		}
	case in.IP == "":
		p.forbidden(mode, "may not be specified when `ip` is not set")
	default:
		oneOf(p, mode, *in.IPMode, corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP)
	}
	if in.Hostname != "" {
		p.invalid(path.Child("hostname"), in.Hostname, validation.IsDNS1123Subdomain(in.Hostname)...)
		if _, ok := parseSloppyIP(in.Hostname); ok {
			p.invalid(path.Child("hostname"), in.Hostname, "must be a DNS name, not an IP address")
		}
	}
}
