package kinds

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func networkPolicyKind() *Kind {
	return &Kind{
		GVK:        networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
		Resource:   "networkpolicies",
		Singular:   "networkpolicy",
		ShortNames: []string{"netpol"},
		Namespaced: true,
		New:        newOf[networkingv1.NetworkPolicy],
		NewList:    newOf[networkingv1.NetworkPolicyList],

		HasGeneration: true,

		Default:  each(defaultNetworkPolicy),
		Validate: check(validateNetworkPolicy),
		Warnings: warn(warnNetworkPolicy),

		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Pod-Selector", "Pods that the policy is about."),
			ageColumn(),
		},
		Cells: cells(func(n *networkingv1.NetworkPolicy, now metav1.Time) []any {
			return []any{
				n.Name, metav1.FormatLabelSelector(&n.Spec.PodSelector),
				Age(n.CreationTimestamp, now),
			}
		}),
	}
}

func defaultNetworkPolicy(n *networkingv1.NetworkPolicy) {
	spec := &n.Spec
	if len(spec.PolicyTypes) == 0 {
		spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(spec.Egress) > 0 {
			spec.PolicyTypes = append(spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	for i := range spec.Ingress {
		defaultNetworkPolicyPorts(spec.Ingress[i].Ports)
	}
	for i := range spec.Egress {
		defaultNetworkPolicyPorts(spec.Egress[i].Ports)
	}
}

func defaultNetworkPolicyPorts(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		setDefault(&ports[i].Protocol, corev1.ProtocolTCP)
	}
}

// networkPolicyRule is an ingress or an egress rule.
type networkPolicyRule struct {
	ports []networkingv1.NetworkPolicyPort
	peers []networkingv1.NetworkPolicyPeer
	path  *field.Path
	side  string // the name of the field that holds the peers
}

func networkPolicyRules(n *networkingv1.NetworkPolicy) []networkPolicyRule {
	path := field.NewPath("spec")
	var rules []networkPolicyRule
	for i, r := range n.Spec.Ingress {
		rules = append(rules, networkPolicyRule{r.Ports, r.From, path.Child("ingress").Index(i), "from"})
	}
	for i, r := range n.Spec.Egress {
		rules = append(rules, networkPolicyRule{r.Ports, r.To, path.Child("egress").Index(i), "to"})
	}
	return rules
}

func validateNetworkPolicy(n *networkingv1.NetworkPolicy) field.ErrorList {
	var p problems
	path := field.NewPath("spec")
	validateSelector(&p, &n.Spec.PodSelector, path.Child("podSelector"))
	for _, r := range networkPolicyRules(n) {
		for i := range r.ports {
			validateNetworkPolicyPort(&p, &r.ports[i], r.path.Child("ports").Index(i))
		}
		for i := range r.peers {
			validateNetworkPolicyPeer(&p, &r.peers[i], r.path.Child(r.side).Index(i))
		}
	}
	types := path.Child("policyTypes")
	if len(n.Spec.PolicyTypes) > 2 {
		p.invalid(types, n.Spec.PolicyTypes, "may not specify more than two policyTypes")
		return p.list
	}
	for i, t := range n.Spec.PolicyTypes {
		oneOf(&p, types.Index(i), t, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
	}
	return p.list
}

// validateSelector checks a label selector; nil is fine.
func validateSelector(p *problems, s *metav1.LabelSelector, path *field.Path) {
	p.add(metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)...)
}

func validateNetworkPolicyPort(p *problems, port *networkingv1.NetworkPolicyPort, path *field.Path) {
	if port.Protocol != nil {
		oneOf(p, path.Child("protocol"), *port.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	}
	at, end := path.Child("port"), path.Child("endPort")
	switch {
	case port.Port == nil:
		if port.EndPort != nil {
			p.invalid(end, *port.EndPort, "may not be specified when `port` is not specified")
		}
	case port.Port.Type == intstr.Int:
		p.invalid(at, port.Port.IntVal, validation.IsValidPortNum(int(port.Port.IntVal))...)
		if port.EndPort == nil {
			return
		}
		if *port.EndPort < port.Port.IntVal {
			p.invalid(end, port.Port.IntVal, "must be greater than or equal to `port`")
		}
		p.invalid(end, *port.EndPort, validation.IsValidPortNum(int(*port.EndPort))...)
	default:
		if port.EndPort != nil {
			p.invalid(end, *port.EndPort, "may not be specified when `port` is non-numeric")
		}
		p.invalid(at, port.Port.StrVal, validation.IsValidPortName(port.Port.StrVal)...)
	}
}

func validateNetworkPolicyPeer(p *problems, peer *networkingv1.NetworkPolicyPeer, path *field.Path) {
	if peer.PodSelector != nil {
		validateSelector(p, peer.PodSelector, path.Child("podSelector"))
	}
	if peer.NamespaceSelector != nil {
		validateSelector(p, peer.NamespaceSelector, path.Child("namespaceSelector"))
	}
	if peer.IPBlock != nil {
		validateIPBlock(p, peer.IPBlock, path.Child("ipBlock"))
	}
	selectors := peer.PodSelector != nil || peer.NamespaceSelector != nil
	switch {
	case !selectors && peer.IPBlock == nil:
		p.required(path, "must specify a peer")
	case selectors && peer.IPBlock != nil:
		p.forbidden(path, "may not specify both ipBlock and another peer")
	}
}

func validateIPBlock(p *problems, b *networkingv1.IPBlock, path *field.Path) {
	if b.CIDR == "" {
		p.required(path.Child("cidr"), "")
		return
	}
	p.add(validation.IsValidCIDRForLegacyField(path.Child("cidr"), b.CIDR, true, nil)...)
	block, err := netip.ParsePrefix(b.CIDR)
	if err != nil {
		return // reported already
	}
	for i, s := range b.Except {
		at := path.Child("except").Index(i)
		p.add(validation.IsValidCIDRForLegacyField(at, s, true, nil)...)
		except, err := netip.ParsePrefix(s)
		if err != nil {
			continue
		}
		if !block.Contains(except.Masked().Addr()) || block.Bits() >= except.Bits() {
			p.invalid(at, s, "must be a strict subset of `cidr`")
		}
	}
}

func warnNetworkPolicy(n, _ *networkingv1.NetworkPolicy) []string {
	var warnings []string
	for _, r := range networkPolicyRules(n) {
		for i, peer := range r.peers {
			if peer.IPBlock == nil {
				continue
			}
			path := r.path.Child(r.side).Index(i).Child("ipBlock")
			warnings = append(warnings, validation.GetWarningsForCIDR(path.Child("cidr"), peer.IPBlock.CIDR)...)
			for k, except := range peer.IPBlock.Except {
				warnings = append(warnings, validation.GetWarningsForCIDR(path.Child("except").Index(k), except)...)
			}
		}
	}
	return warnings
}
