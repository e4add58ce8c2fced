package rest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/even-keel/evenkeel/server/watch"
)

// Resolve returns an address at which a service's port is served: one of its
// ready endpoints, as there need not be a network that knows cluster addresses.
func (a *API) Resolve(_ context.Context, namespace, name string, port int32) (string, error) {
	services := a.registry.stored("", "services")
	o := services.objects.Get(namespace, name)
	if o == nil {
		return "", apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, namespace+"/"+name)
	}
	obj, err := services.decoded(o)
	if err != nil {
		return "", err
	}
	svc := obj.(*corev1.Service)
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		return net.JoinHostPort(svc.Spec.ExternalName, strconv.Itoa(int(port))), nil
	}
	i := slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
	if i < 0 {
		return "", fmt.Errorf("service %s/%s has no port %d", namespace, name, port)
	}
	address, err := a.endpoint(namespace, name, svc.Spec.Ports[i])
	if err != nil {
		return "", err
	}
	if address == "" {
		return "", fmt.Errorf("no endpoints available for service %q", namespace+"/"+name)
	}
	return address, nil
}

// endpoint returns the first ready endpoint of a service's port, or "".
func (a *API) endpoint(namespace, service string, port corev1.ServicePort) (found string, err error) {
	slicesOf := a.registry.stored("discovery.k8s.io", "endpointslices")
	slicesOf.objects.Snapshot().Scan(namespace, "", func(o *watch.Object) bool {
		labels, labelErr := labelsOf(o)
		if labelErr != nil || labels[discoveryv1.LabelServiceName] != service {
			return true
		}
		obj, decodeErr := slicesOf.decoded(o)
		if decodeErr != nil {
			err = decodeErr
			return false
		}
		found = readyAddress(obj.(*discoveryv1.EndpointSlice), port)
		return found == ""
	})
	return found, err
}

// readyAddress finds a service's port in a slice by its name, as proxies do: the
// number that it has there is the endpoints' own.
func readyAddress(s *discoveryv1.EndpointSlice, port corev1.ServicePort) string {
	for _, p := range s.Ports {
		if p.Port == nil || ptr.Deref(p.Name, "") != port.Name {
			continue
		}
		for _, e := range s.Endpoints {
			if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				return net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port)))
			}
		}
	}
	return ""
}
