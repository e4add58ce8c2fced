package kinds

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateClusterIPs checks clusterIP, clusterIPs, ipFamilies and
// ipFamilyPolicy against each other. old, which may be nil, has addresses that
// are fine whatever their form.
func validateClusterIPs(svc, old *corev1.Service) field.ErrorList {
	if isExternalName(svc) {
		return nil
	}
	p, s, path := &problems{}, &svc.Spec, field.NewPath("spec")
	p.clusterIPAgrees(path.Child("clusterIPs"), s)
	p.ipFamilies(path.Child("ipFamilies"), s.IPFamilies)
	if s.IPFamilyPolicy != nil {
		oneOf(p, path.Child("ipFamilyPolicy"), *s.IPFamilyPolicy, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack)
	}
	var known []string
	if old != nil {
		known = old.Spec.ClusterIPs
	}
	if p.clusterIPForms(path.Child("clusterIPs"), s.ClusterIPs, known) {
		p.clusterIPFamilies(path.Child("clusterIPs"), svc)
	}
	return p.list
}

// clusterIPAgrees checks that clusterIP is the first of clusterIPs.
func (p *problems) clusterIPAgrees(path *field.Path, s *corev1.ServiceSpec) {
	switch {
	case s.ClusterIP == "" && len(s.ClusterIPs) > 0:
		p.invalid(path, s.ClusterIPs, "must be empty when `clusterIP` is not specified")
	case s.ClusterIP != "" && len(s.ClusterIPs) == 0:
		p.required(path, "")
	case s.ClusterIP != "" && s.ClusterIPs[0] != s.ClusterIP:
		p.invalid(path, s.ClusterIPs, "first value must match `clusterIP`")
	}
}

func (p *problems) ipFamilies(path *field.Path, families []corev1.IPFamily) {
	before := seen{}
	for i, f := range families {
		oneOf(p, path.Index(i), f, corev1.IPv4Protocol, corev1.IPv6Protocol)
		if before.again(string(f)) {
			p.duplicate(path.Index(i), f)
		}
	}
}

// clusterIPForms checks each address by itself, and reports whether all are
// good.
func (p *problems) clusterIPForms(path *field.Path, ips, known []string) bool {
	good := true
	for i, ip := range ips {
		if i == 0 && ip == corev1.ClusterIPNone {
			if len(ips) > 1 {
				good = false
				p.invalid(path, ips, "'None' must be the first and only value")
			}
			continue
		}
		errs := validation.IsValidIPForLegacyField(path.Index(i), ip, true, known)
		good = good && len(errs) == 0
		p.add(errs...)
	}
	if len(ips) > 2 {
		p.invalid(path, ips, "may only hold up to 2 values")
	}
	return good
}

// clusterIPFamilies checks that there is one address of a family, and of the
// family that ipFamilies says.
func (p *problems) clusterIPFamilies(path *field.Path, svc *corev1.Service) {
	ips, families := svc.Spec.ClusterIPs, svc.Spec.IPFamilies
	isIPv4Text := func(ip string) bool { return !isIPv6Text(ip) }
	if len(ips) > 1 && !(slices.ContainsFunc(ips, isIPv4Text) && slices.ContainsFunc(ips, isIPv6Text)) {
		p.invalid(path, ips, "may specify no more than one IP for each IP family")
	}
	if isHeadless(svc) {
		return
	}
	for i := range min(len(ips), len(families)) {
		switch v6 := isIPv6Text(ips[i]); {
		case families[i] == corev1.IPv4Protocol && v6, families[i] == corev1.IPv6Protocol && !v6:
			p.invalid(path.Index(i), ips[i], fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%v]`", families[i], i))
		}
	}
}
