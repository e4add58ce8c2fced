// Package bootstrap holds the objects that a cluster has before anybody made
// one: namespaces, the service of the API server, the roles of people and of
// components, priority classes, what extension servers trust.
//
// They are those of kube-apiserver 1.37 with its default feature gates. The
// package is pure and does nothing until it is called; what it returns has kind
// and version set and is the caller's.
package bootstrap

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Options are what the objects depend on.
type Options struct {
	// ServiceRange is where services get their addresses from; the first after
	// the network's own is the API server's. The zero value is 10.0.0.0/24.
	ServiceRange netip.Prefix
	// AdvertiseAddress is where other machines reach the server. Without one
	// its service has no endpoints, as with 0.0.0.0. An address of the loopback
	// is taken as it is, but validation of endpoints refuses it.
	AdvertiseAddress netip.Addr
	// Port is where the server listens; zero is 6443.
	Port int32
	// ClientCA, in PEM, is what certificates of clients are checked against.
	// Without one nothing is told to extension servers.
	ClientCA []byte
	// RootCA, in PEM, is what pods check the server's certificate against.
	// Without one namespaces do not get a copy.
	RootCA []byte
}

// All returns the objects of a new cluster, and those of its first namespaces.
func All(o Options) []runtime.Object {
	all := Objects(o)
	for _, namespace := range []string{metav1.NamespaceDefault, corev1.NamespaceNodeLease, metav1.NamespacePublic, metav1.NamespaceSystem} {
		all = append(all, ForNamespace(namespace, o)...)
	}
	return all
}

// Objects returns the objects of a new cluster, each after the namespace that it
// is in. What every namespace has, these too, is left to [ForNamespace].
func Objects(o Options) []runtime.Object {
	o = o.withDefaults()
	objects := namespaces("default", "kube-node-lease", "kube-public", "kube-system")
	objects = append(objects, priorityClasses()...)
	objects = append(objects, serverService(o)...)
	objects = append(objects, extensionTrust(o)...)
	return append(objects, policy()...)
}

// ForNamespace returns the objects that a namespace has from the start.
func ForNamespace(name string, o Options) []runtime.Object {
	objects := []runtime.Object{defaultAccount(name)}
	if len(o.RootCA) > 0 {
		objects = append(objects, rootCA(name, o.RootCA))
	}
	return objects
}

func (o Options) withDefaults() Options {
	if !o.ServiceRange.IsValid() {
		o.ServiceRange = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, 0}), 24)
	}
	o.ServiceRange = o.ServiceRange.Masked()
	o.AdvertiseAddress = o.AdvertiseAddress.Unmap().WithZone("")
	if o.AdvertiseAddress.IsUnspecified() {
		o.AdvertiseAddress = netip.Addr{}
	}
	if o.Port == 0 {
		o.Port = 6443
	}
	return o
}

// serviceAddress is the address of the API server's service.
func (o Options) serviceAddress() netip.Addr { return o.ServiceRange.Addr().Next() }
