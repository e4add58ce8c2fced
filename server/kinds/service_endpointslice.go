package kinds

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits on an EndpointSlice.
const (
	maxSliceEndpoints = 1000
	maxSlicePorts     = 20000
	maxSliceAddresses = 100
	maxTopologyLabels = 16
	maxHints          = 8
)

// endpointSliceKind counts changes of labels as generations, too.
func endpointSliceKind() *Kind {
	return &Kind{
		GVK:      discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
		Resource: "endpointslices", Singular: "endpointslice",
		Namespaced: true, HasGeneration: true,
		New: newOf[discoveryv1.EndpointSlice], NewList: newOf[discoveryv1.EndpointSliceList],
		Default: each(func(s *discoveryv1.EndpointSlice) {
			for i := range s.Ports {
				setDefault(&s.Ports[i].Name, "")
				setDefault(&s.Ports[i].Protocol, corev1.ProtocolTCP)
			}
		}),
		PrepareCreate: each(func(s *discoveryv1.EndpointSlice) { dropTopology(s, nil) }),
		PrepareUpdate: eachPair(func(s, old *discoveryv1.EndpointSlice) {
			dropTopology(s, old)
			if !equality.Semantic.DeepEqual(s.Labels, old.Labels) {
				s.Generation = old.Generation + 1
			}
		}),
		Validate: check(validateEndpointSlice),
		ValidateCreate: check(func(s *discoveryv1.EndpointSlice) field.ErrorList {
			return validateSliceEndpoints(s)
		}),
		ValidateUpdate: checkPair(func(s, old *discoveryv1.EndpointSlice) field.ErrorList {
			p := &problems{}
			if errs := validateSliceEndpoints(s); !equality.Semantic.DeepEqual(s.Endpoints, old.Endpoints) {
				p.add(errs...)
			}
			p.immutable(field.NewPath("addressType"), s.AddressType, old.AddressType)
			return p.list
		}),
		Warnings: warn(sliceWarnings),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(), column("AddressType", "Family of the addresses."), column("Ports", "Ports of the endpoints."),
			column("Endpoints", "Addresses of the endpoints."), ageColumn(),
		},
		Cells: cells(sliceCells),
	}
}

// dropTopology empties a field that v1 does not have, keeping a node's name that
// old had there.
func dropTopology(s, old *discoveryv1.EndpointSlice) {
	if old != nil && equality.Semantic.DeepEqual(s.Endpoints, old.Endpoints) {
		return
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		node, ok := e.DeprecatedTopology[corev1.LabelHostname]
		if ok && e.NodeName == nil && old != nil && len(apivalidation.NameIsDNSSubdomain(node, false)) == 0 &&
			slices.ContainsFunc(old.Endpoints, func(o discoveryv1.Endpoint) bool { return o.DeprecatedTopology[corev1.LabelHostname] == node }) {
			e.NodeName = &node
		}
		e.DeprecatedTopology = nil
	}
}

func validateEndpointSlice(s *discoveryv1.EndpointSlice) field.ErrorList {
	p, path := &problems{}, field.NewPath("ports")
	chosen(p, field.NewPath("addressType"), s.AddressType, discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	if len(s.Ports) > maxSlicePorts {
		p.add(field.TooMany(path, len(s.Ports), maxSlicePorts))
		return p.list
	}
	names := seen{}
	for i, port := range s.Ports {
		at, name := path.Index(i), ""
		if port.Name != nil {
			name = *port.Name
		}
		if name != "" {
			p.invalid(at.Child("name"), name, validation.IsDNS1123Label(name)...)
		}
		if names.again(name) {
			p.duplicate(at.Child("name"), name)
		}
		if port.Protocol == nil {
			p.required(at.Child("protocol"), "")
		} else {
			oneOf(p, at.Child("protocol"), *port.Protocol, portProtocols...)
		}
		if port.AppProtocol != nil {
			p.invalid(at.Child("appProtocol"), *port.AppProtocol, validation.IsQualifiedName(*port.AppProtocol)...)
		}
	}
	return p.list
}

func validateSliceEndpoints(s *discoveryv1.EndpointSlice) field.ErrorList {
	p, path := &problems{}, field.NewPath("endpoints")
	if len(s.Endpoints) > maxSliceEndpoints {
		p.add(field.TooMany(path, len(s.Endpoints), maxSliceEndpoints))
		return p.list
	}
	for i := range s.Endpoints {
		p.sliceEndpoint(path.Index(i), &s.Endpoints[i], s.AddressType)
	}
	return p.list
}

func (p *problems) sliceEndpoint(path *field.Path, e *discoveryv1.Endpoint, kind discoveryv1.AddressType) {
	addresses := path.Child("addresses")
	if len(e.Addresses) == 0 {
		p.required(addresses, "must contain at least 1 address")
	} else if len(e.Addresses) > maxSliceAddresses {
		p.add(field.TooMany(addresses, len(e.Addresses), maxSliceAddresses))
	}
	for i, a := range e.Addresses {
		p.sliceAddress(addresses, i, a, kind)
	}
	if e.NodeName != nil {
		p.invalid(path.Child("nodeName"), *e.NodeName, apivalidation.NameIsDNSSubdomain(*e.NodeName, false)...)
	}
	topology := path.Child("deprecatedTopology")
	if len(e.DeprecatedTopology) > maxTopologyLabels {
		p.add(field.TooMany(topology, len(e.DeprecatedTopology), maxTopologyLabels))
	}
	p.add(metavalidation.ValidateLabels(e.DeprecatedTopology, topology)...)
	if e.Hostname != nil {
		p.invalid(path.Child("hostname"), *e.Hostname, validation.IsDNS1123Label(*e.Hostname)...)
	}
	if e.Hints != nil {
		p.endpointHints(path.Child("hints"), e.Hints)
	}
}

func (p *problems) sliceAddress(path *field.Path, i int, a string, kind discoveryv1.AddressType) {
	at := path.Index(i)
	var errs field.ErrorList
	switch kind {
	case discoveryv1.AddressTypeIPv4:
		errs = validation.IsValidIPForLegacyField(at, a, true, nil)
	case discoveryv1.AddressTypeIPv6:
		errs = validation.IsValidIP(at, a)
	case discoveryv1.AddressTypeFQDN:
		p.add(validation.IsFullyQualifiedDomainName(at, a)...)
		return
	default:
		return
	}
	p.add(errs...)
	if len(errs) > 0 {
		return
	}
	if isIPv6Text(a) != (kind == discoveryv1.AddressTypeIPv6) {
		p.invalid(path, a, fmt.Sprintf("must be an %s address", kind))
	}
	p.endpointIP(at, a)
}

func (p *problems) endpointHints(path *field.Path, h *discoveryv1.EndpointHints) {
	zones, nodes := path.Child("forZones"), path.Child("forNodes")
	if len(h.ForZones) > maxHints {
		p.add(field.TooMany(zones, len(h.ForZones), maxHints))
		return
	}
	names := seen{}
	for i, z := range h.ForZones {
		if names.again(z.Name) {
			p.duplicate(zones.Index(i).Child("name"), z.Name)
		}
		p.invalid(zones.Index(i).Child("name"), z.Name, validation.IsValidLabelValue(z.Name)...)
	}
	if len(h.ForNodes) > maxHints {
		p.add(field.TooMany(nodes, len(h.ForNodes), maxHints))
		return
	}
	names = seen{}
	for i, n := range h.ForNodes {
		if names.again(n.Name) {
			p.duplicate(nodes.Index(i).Child("name"), n.Name)
		}
		p.invalid(nodes.Index(i).Child("name"), n.Name, apivalidation.NameIsDNSSubdomain(n.Name, false)...)
	}
}

func sliceWarnings(s, old *discoveryv1.EndpointSlice) []string {
	var out []string
	if old == nil && s.AddressType == discoveryv1.AddressTypeFQDN {
		out = append(out, "spec.addressType: FQDN endpoints are deprecated")
	}
	switch s.Labels[discoveryv1.LabelManagedBy] {
	case "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io":
		return out
	}
	for i, e := range s.Endpoints {
		for j, a := range e.Addresses {
			out = append(out, ipWarnings(field.NewPath("endpoints").Index(i).Child("addresses").Index(j), a)...)
		}
	}
	return out
}

func sliceCells(s *discoveryv1.EndpointSlice, now metav1.Time) []any {
	var ports, addresses []string
	for _, port := range s.Ports {
		text := "*"
		if port.Port != nil {
			text = strconv.Itoa(int(*port.Port))
		} else if port.Name != nil {
			text = *port.Name
		}
		ports = append(ports, text)
	}
	for _, e := range s.Endpoints {
		addresses = append(addresses, e.Addresses...)
	}
	return []any{s.Name, string(s.AddressType), firstThree(ports, "<unset>"), firstThree(addresses, "<unset>"),
		Age(s.CreationTimestamp, now)}
}
