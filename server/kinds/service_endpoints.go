package kinds

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func endpointsKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("Endpoints"),
		Resource: "endpoints", Singular: "endpoints",
		ShortNames: []string{"ep"}, Namespaced: true, CreateOnUpdate: true,
		Deprecated: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
		New:        newOf[corev1.Endpoints], NewList: newOf[corev1.EndpointsList],
		Default: each(func(e *corev1.Endpoints) {
			for _, s := range e.Subsets {
				for i := range s.Ports {
					setEmpty(&s.Ports[i].Protocol, corev1.ProtocolTCP)
				}
			}
		}),
		ValidateCreate: check(validateEndpoints),
		ValidateUpdate: checkPair(func(e, old *corev1.Endpoints) field.ErrorList {
			errs := validateEndpoints(e)
			if len(errs) > 0 && equality.Semantic.DeepEqual(e.Subsets, old.Subsets) {
				return nil
			}
			return errs
		}),
		Warnings: warn(func(e, _ *corev1.Endpoints) []string { return endpointsWarnings(e) }),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(), column("Endpoints", "Addresses and ports behind the service."), ageColumn(),
		},
		Cells: cells(func(e *corev1.Endpoints, now metav1.Time) []any {
			return []any{e.Name, endpointsText(e), Age(e.CreationTimestamp, now)}
		}),
	}
}

func validateEndpoints(e *corev1.Endpoints) field.ErrorList {
	p := &problems{}
	for i, s := range e.Subsets {
		path := field.NewPath("subsets").Index(i)
		if len(s.Addresses) == 0 && len(s.NotReadyAddresses) == 0 {
			p.required(path, "must specify `addresses` or `notReadyAddresses`")
		}
		for j := range s.Addresses {
			p.endpointAddress(path.Child("addresses").Index(j), &s.Addresses[j])
		}
		for j := range s.NotReadyAddresses {
			p.endpointAddress(path.Child("notReadyAddresses").Index(j), &s.NotReadyAddresses[j])
		}
		for j := range s.Ports {
			p.endpointPort(path.Child("ports").Index(j), &s.Ports[j], len(s.Ports) > 1)
		}
	}
	return p.list
}

func (p *problems) endpointAddress(path *field.Path, a *corev1.EndpointAddress) {
	p.add(validation.IsValidIPForLegacyField(path.Child("ip"), a.IP, true, nil)...)
	if a.Hostname != "" {
		p.invalid(path.Child("hostname"), a.Hostname, validation.IsDNS1123Label(a.Hostname)...)
	}
	if a.NodeName != nil {
		p.invalid(path.Child("nodeName"), *a.NodeName, apivalidation.NameIsDNSSubdomain(*a.NodeName, false)...)
	}
	p.endpointIP(path.Child("ip"), a.IP)
}

func (p *problems) endpointPort(path *field.Path, port *corev1.EndpointPort, needsName bool) {
	switch {
	case port.Name != "":
		p.invalid(path.Child("name"), port.Name, validation.IsDNS1123Label(port.Name)...)
	case needsName:
		p.required(path.Child("name"), "")
	}
	p.invalid(path.Child("port"), port.Port, validation.IsValidPortNum(int(port.Port))...)
	chosen(p, path.Child("protocol"), port.Protocol, portProtocols...)
	if port.AppProtocol != nil {
		p.invalid(path.Child("appProtocol"), *port.AppProtocol, validation.IsQualifiedName(*port.AppProtocol)...)
	}
}

func endpointsWarnings(e *corev1.Endpoints) []string {
	if e.Labels["endpoints.kubernetes.io/managed-by"] == "endpoint-controller" {
		return nil
	}
	var out []string
	for i, s := range e.Subsets {
		for _, l := range []struct {
			name      string
			addresses []corev1.EndpointAddress
		}{{"addresses", s.Addresses}, {"notReadyAddresses", s.NotReadyAddresses}} {
			for j, a := range l.addresses {
				out = append(out, ipWarnings(field.NewPath("subsets").Index(i).Child(l.name).Index(j).Child("ip"), a.IP)...)
			}
		}
	}
	return out
}

// endpointsText shows the first three addresses, each with each port.
func endpointsText(e *corev1.Endpoints) string {
	if len(e.Subsets) == 0 {
		return "<none>"
	}
	var all []string
	for _, s := range e.Subsets {
		if len(s.Ports) == 0 {
			for _, a := range s.Addresses {
				all = append(all, a.IP)
			}
		}
		for _, port := range s.Ports {
			for _, a := range s.Addresses {
				all = append(all, net.JoinHostPort(a.IP, strconv.Itoa(int(port.Port))))
			}
		}
	}
	return firstThree(all, "")
}

// firstThree joins a list of which more than three are only counted.
func firstThree(all []string, none string) string {
	if len(all) <= 3 {
		return orElse(strings.Join(all, ","), none)
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(all[:3], ","), len(all)-3)
}
