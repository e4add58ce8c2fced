//lint:file-ignore SA1019 Endpoints are deprecated, but the real server still makes them.

package bootstrap_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/even-keel/evenkeel/server/bootstrap"
)

func TestTheServiceHasTheFirstAddressOfTheRange(t *testing.T) {
	for name, c := range map[string]struct {
		given         netip.Prefix
		address, cidr string
		family        corev1.IPFamily
	}{
		"none":            {netip.Prefix{}, "10.0.0.1", "10.0.0.0/24", corev1.IPv4Protocol},
		"IPv4":            {netip.MustParsePrefix("10.96.0.0/12"), "10.96.0.1", "10.96.0.0/12", corev1.IPv4Protocol},
		"inside of IPv4":  {netip.MustParsePrefix("10.1.2.3/16"), "10.1.0.1", "10.1.0.0/16", corev1.IPv4Protocol},
		"IPv6":            {netip.MustParsePrefix("fd00::/108"), "fd00::1", "fd00::/108", corev1.IPv6Protocol},
		"a range of four": {netip.MustParsePrefix("10.0.0.4/30"), "10.0.0.5", "10.0.0.4/30", corev1.IPv4Protocol},
	} {
		t.Run(name, func(t *testing.T) {
			objects := bootstrap.Objects(bootstrap.Options{ServiceRange: c.given})
			s := only[*corev1.Service](t, objects).Spec
			if s.ClusterIP != c.address || s.ClusterIPs[0] != c.address || s.IPFamilies[0] != c.family {
				t.Errorf("the service has %s, %v, %v", s.ClusterIP, s.ClusterIPs, s.IPFamilies)
			}
			if got := only[*networkingv1.ServiceCIDR](t, objects).Spec.CIDRs; got[0] != c.cidr {
				t.Errorf("the range is %v", got)
			}
			if got := only[*networkingv1.IPAddress](t, objects); got.Name != c.address {
				t.Errorf("the address is %s", got.Name)
			}
		})
	}
}

func TestTheServiceLeadsToTheServer(t *testing.T) {
	objects := bootstrap.Objects(options)
	service := only[*corev1.Service](t, objects)
	if service.Namespace+"/"+service.Name != "default/kubernetes" {
		t.Errorf("the service is %s/%s", service.Namespace, service.Name)
	}
	port := service.Spec.Ports[0]
	if port.Name != "https" || port.Port != 443 || port.TargetPort.IntVal != options.Port {
		t.Errorf("the service has the port %v", port)
	}

	slice := only[*discoveryv1.EndpointSlice](t, objects)
	if slice.Labels[discoveryv1.LabelServiceName] != service.Name || slice.Namespace != service.Namespace {
		t.Errorf("the slice is of %s/%s", slice.Namespace, slice.Labels[discoveryv1.LabelServiceName])
	}
	if diff := cmp.Diff([]string{"192.0.2.7"}, slice.Endpoints[0].Addresses); diff != "" {
		t.Error(diff)
	}
	if got := slice.Ports[0]; *got.Name != port.Name || *got.Port != options.Port {
		t.Errorf("the slice has the port %v", got)
	}

	old := only[*corev1.Endpoints](t, objects)
	if old.Namespace != service.Namespace || old.Name != service.Name {
		t.Errorf("the endpoints are %s/%s", old.Namespace, old.Name)
	}
	if got := old.Subsets[0]; got.Addresses[0].IP != "192.0.2.7" || got.Ports[0].Port != options.Port {
		t.Errorf("the endpoints are %v", got)
	}
}

func TestEndpointsAreOfTheFamilyOfTheAddress(t *testing.T) {
	for given, want := range map[string]discoveryv1.AddressType{
		"192.0.2.7":        discoveryv1.AddressTypeIPv4,
		"::ffff:192.0.2.7": discoveryv1.AddressTypeIPv4,
		"2001:db8::7":      discoveryv1.AddressTypeIPv6,
	} {
		objects := bootstrap.Objects(bootstrap.Options{AdvertiseAddress: netip.MustParseAddr(given)})
		if got := only[*discoveryv1.EndpointSlice](t, objects); got.AddressType != want || *got.Ports[0].Port != 6443 {
			t.Errorf("%s: %s, port %d", given, got.AddressType, *got.Ports[0].Port)
		}
	}
}

func TestAServerThatCannotBeReachedHasNoEndpoints(t *testing.T) {
	for _, address := range []netip.Addr{{}, netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		objects := bootstrap.Objects(bootstrap.Options{AdvertiseAddress: address})
		if len(of[*discoveryv1.EndpointSlice](objects)) > 0 || len(of[*corev1.Endpoints](objects)) > 0 {
			t.Errorf("%v has endpoints", address)
		}
	}
}
