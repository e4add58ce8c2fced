package bootstrap

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	serverName = "kubernetes"
	portName   = "https"
)

// serverService is the service by which pods reach the API server, with the
// range and the address that it takes.
func serverService(o Options) []runtime.Object {
	objects := []runtime.Object{serviceRange(o), serviceAddress(o), service(o)}
	if o.AdvertiseAddress.IsValid() {
		objects = append(objects, endpoints(o), endpointSlice(o))
	}
	return objects
}

func networkingKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: kind}
}

func serviceRange(o Options) runtime.Object {
	return &networkingv1.ServiceCIDR{
		TypeMeta:   networkingKind("ServiceCIDR"),
		ObjectMeta: metav1.ObjectMeta{Name: serverName},
		Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{o.ServiceRange.String()}},
	}
}

func serviceAddress(o Options) runtime.Object {
	return &networkingv1.IPAddress{
		TypeMeta: networkingKind("IPAddress"),
		ObjectMeta: metav1.ObjectMeta{
			Name: o.serviceAddress().String(),
			Labels: map[string]string{
				networkingv1.LabelIPAddressFamily: string(family(o.serviceAddress())),
				networkingv1.LabelManagedBy:       "ipallocator.k8s.io",
			},
		},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{
			Resource: "services", Namespace: "default", Name: serverName,
		}},
	}
}

func service(o Options) runtime.Object {
	address := o.serviceAddress()
	return &corev1.Service{
		TypeMeta: coreKind("Service"),
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default",
			Name:      serverName,
			Labels:    map[string]string{"component": "apiserver", "provider": "kubernetes"},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{
				Name: portName, Protocol: corev1.ProtocolTCP, Port: 443, TargetPort: intstr.FromInt32(o.Port),
			}},
			ClusterIP:             address.String(),
			ClusterIPs:            []string{address.String()},
			IPFamilies:            []corev1.IPFamily{family(address)},
			IPFamilyPolicy:        new(corev1.IPFamilyPolicySingleStack),
			SessionAffinity:       corev1.ServiceAffinityNone,
			InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		},
	}
}

// endpoints is the older form of the slice: both are kept by hand, and the label
// keeps controllers from making the one of the other.
func endpoints(o Options) runtime.Object {
	//lint:ignore SA1019 The kind is deprecated, but the real server still makes this one.
	return &corev1.Endpoints{
		TypeMeta: coreKind("Endpoints"),
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default",
			Name:      serverName,
			Labels:    map[string]string{discoveryv1.LabelSkipMirror: "true"},
		},
		//lint:ignore SA1019 As above.
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: o.AdvertiseAddress.String()}},
			Ports:     []corev1.EndpointPort{{Name: portName, Port: o.Port, Protocol: corev1.ProtocolTCP}},
		}},
	}
}

func endpointSlice(o Options) runtime.Object {
	return &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default",
			Name:      serverName,
			Labels:    map[string]string{discoveryv1.LabelServiceName: serverName},
		},
		AddressType: discoveryv1.AddressType(family(o.AdvertiseAddress)),
		Endpoints: []discoveryv1.Endpoint{{
			Addresses:  []string{o.AdvertiseAddress.String()},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		}},
		Ports: []discoveryv1.EndpointPort{{
			Name: new(portName), Port: new(o.Port), Protocol: new(corev1.ProtocolTCP),
		}},
	}
}

func family(a netip.Addr) corev1.IPFamily {
	if a.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}
