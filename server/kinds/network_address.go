package kinds

import (
	"net/netip"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func ipAddressKind() *Kind {
	return &Kind{
		GVK:        networkingv1.SchemeGroupVersion.WithKind("IPAddress"),
		Resource:   "ipaddresses",
		Singular:   "ipaddress",
		ShortNames: []string{"ip"},
		New:        newOf[networkingv1.IPAddress],
		NewList:    newOf[networkingv1.IPAddressList],

		ValidName: ipAddressName,

		Validate:       check(validateIPAddress),
		ValidateUpdate: checkPair(validateIPAddressUpdate),

		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("ParentRef", "The object that the address belongs to."),
		},
		// The real server's rows have a cell more than there are columns.
		Cells: cells(func(a *networkingv1.IPAddress, now metav1.Time) []any {
			return []any{a.Name, ipAddressParent(a.Spec.ParentRef), Age(a.CreationTimestamp, now)}
		}),
	}
}

func serviceCIDRKind() *Kind {
	return &Kind{
		GVK:      networkingv1.SchemeGroupVersion.WithKind("ServiceCIDR"),
		Resource: "servicecidrs",
		Singular: "servicecidr",
		New:      newOf[networkingv1.ServiceCIDR],
		NewList:  newOf[networkingv1.ServiceCIDRList],

		HasStatus: true,

		ValidateCreate: check(validateServiceCIDR),
		ValidateUpdate: checkPair(validateServiceCIDRUpdate),

		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("CIDRs", "Ranges that addresses of services come from."),
			ageColumn(),
		},
		Cells: cells(func(c *networkingv1.ServiceCIDR, now metav1.Time) []any {
			return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), Age(c.CreationTimestamp, now)}
		}),
	}
}

// ipAddressName wants the address itself, in its canonical form.
func ipAddressName(name string, prefix bool) []string {
	var wrong []string
	for _, err := range validation.IsValidIP(nil, name) {
		wrong = append(wrong, err.Detail)
	}
	return wrong
}

func ipAddressParent(ref *networkingv1.ParentReference) string {
	if ref == nil {
		return "<none>"
	}
	resource := schema.GroupResource{Group: ref.Group, Resource: ref.Resource}
	parent := strings.ToLower(resource.String())
	if ref.Namespace != "" {
		parent += "/" + ref.Namespace
	}
	return parent + "/" + ref.Name
}

func validateIPAddress(a *networkingv1.IPAddress) field.ErrorList {
	var p problems
	path, ref := field.NewPath("spec", "parentRef"), a.Spec.ParentRef
	if ref == nil {
		p.required(path, "")
		return p.list
	}
	if ref.Group != "" {
		p.invalid(path.Child("group"), ref.Group, validation.IsDNS1123Subdomain(ref.Group)...)
	}
	p.named(path.Child("resource"), ref.Resource, content.IsPathSegmentName)
	p.named(path.Child("name"), ref.Name, content.IsPathSegmentName)
	if ref.Namespace != "" {
		p.invalid(path.Child("namespace"), ref.Namespace, content.IsPathSegmentName(ref.Namespace)...)
	}
	return p.list
}

func validateIPAddressUpdate(a, old *networkingv1.IPAddress) field.ErrorList {
	return apivalidation.ValidateImmutableField(
		(*shownParentReference)(a.Spec.ParentRef), (*shownParentReference)(old.Spec.ParentRef),
		field.NewPath("spec", "parentRef"))
}

func validateServiceCIDR(c *networkingv1.ServiceCIDR) field.ErrorList {
	var p problems
	path, cidrs := field.NewPath("spec", "cidrs"), c.Spec.CIDRs
	if len(cidrs) == 0 {
		p.required(path, "at least one CIDR required")
		return p.list
	}
	if len(cidrs) > 2 {
		p.invalid(path, shownServiceCIDRSpec(c.Spec), "may only hold up to 2 values")
		return p.list
	}
	for i, s := range cidrs {
		p.add(validation.IsValidCIDR(path.Index(i), s)...)
	}
	if len(cidrs) == 2 && sameIPFamily(cidrs[0], cidrs[1]) {
		p.invalid(path, cidrs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64")
	}
	return p.list
}

// sameIPFamily is false for what cannot be parsed.
func sameIPFamily(a, b string) bool {
	x, errX := netip.ParsePrefix(a)
	y, errY := netip.ParsePrefix(b)
	return errX == nil && errY == nil && x.Addr().Is4() == y.Addr().Is4()
}

// validateServiceCIDRUpdate allows one change: a second range, of the other
// family.
func validateServiceCIDRUpdate(c, old *networkingv1.ServiceCIDR) field.ErrorList {
	var p problems
	path, now, before := field.NewPath("spec", "cidrs"), c.Spec.CIDRs, old.Spec.CIDRs
	grown := len(before) == 1 && len(now) == 2
	if len(now) != len(before) && !grown {
		p.invalid(path, now, apivalidation.FieldImmutableErrorMsg)
		return p.list
	}
	for i, s := range before {
		if now[i] != s {
			p.invalid(path.Index(i), now[i], apivalidation.FieldImmutableErrorMsg)
		}
	}
	if grown {
		p.add(validateServiceCIDR(c)...)
	}
	return p.list
}
