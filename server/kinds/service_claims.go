package kinds

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// serviceAllocation is one run of [AllocateService]; taken grows with it.
type serviceAllocation struct {
	svc   *corev1.Service
	pool  ServicePool
	taken ServiceClaims
}

// addresses takes the cluster address of a service that is new or was one
// without.
func (a *serviceAllocation) addresses(old *corev1.Service) error {
	if isExternalName(a.svc) || len(a.svc.Spec.ClusterIPs) > 0 && a.svc.Spec.ClusterIPs[0] == corev1.ClusterIPNone {
		return nil
	}
	if old != nil && !isExternalName(old) {
		return nil
	}
	s := &a.svc.Spec
	want := ""
	if len(s.ClusterIPs) > 0 {
		want = s.ClusterIPs[0]
	}
	ip, err := a.pool.IP(want)
	if err != nil {
		return a.noAddress(want, err)
	}
	ip = orElse(want, ip)
	a.taken.IPs = append(a.taken.IPs, ip)
	s.ClusterIP, s.ClusterIPs = ip, []string{ip}
	return nil
}

func (a *serviceAllocation) noAddress(want string, err error) error {
	detail := fmt.Sprintf("failed to allocate IP %v: %v", want, err)
	ips := a.svc.Spec.ClusterIPs
	if want == "" {
		if errors.Is(err, ErrServiceRangeFull) {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP for Service %q: %w", a.svc.Name, err))
		}
		detail = fmt.Sprintf("failed to allocate IP: %v", err)
		ips = []string{""}
	}
	return apierrors.NewInvalid(serviceGroupKind, a.svc.Name, field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIPs"), ips, detail)})
}

// nodePorts takes the node ports that the service asks for, or any.
func (a *serviceAllocation) nodePorts(old *corev1.Service) error {
	if !usesNodePorts(a.svc) {
		return nil
	}
	if old == nil {
		return a.firstNodePorts()
	}
	held, ports := nodePortsOf(old), a.svc.Spec.Ports
	for i := range ports {
		switch port := &ports[i]; {
		case port.NodePort == 0 && !allocatesNodePorts(a.svc):
		case port.NodePort == 0:
			if err := a.anyPort(&port.NodePort, "failed to allocate a nodePort: %w"); err != nil {
				return err
			}
		case !slices.Contains(held, port.NodePort) && !slices.Contains(a.taken.Ports, port.NodePort):
			if err := a.thisPort(i, port.NodePort); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstNodePorts is for a new service: ports of one number and several protocols
// share a node port.
func (a *serviceAllocation) firstNodePorts() error {
	ports, byNumber := a.svc.Spec.Ports, map[int32]int32{}
	for i := range ports {
		port := &ports[i]
		if port.NodePort == 0 && !allocatesNodePorts(a.svc) {
			continue
		}
		shared := byNumber[port.Port]
		switch {
		case shared == 0:
			if err := a.firstOf(i); err != nil {
				return err
			}
			byNumber[port.Port] = port.NodePort
		case port.NodePort == 0:
			port.NodePort = shared
		case port.NodePort != shared:
			if err := a.thisPort(i, port.NodePort); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstOf takes the node port of the first port of its number: the one asked for
// by any port of that number, or any.
func (a *serviceAllocation) firstOf(i int) error {
	ports := a.svc.Spec.Ports
	for _, p := range ports {
		if p.Port == ports[i].Port && p.NodePort != 0 {
			ports[i].NodePort = p.NodePort
			return a.thisPort(i, p.NodePort)
		}
	}
	return a.anyPort(&ports[i].NodePort, "failed to allocate a nodePort: %w")
}

func (a *serviceAllocation) thisPort(i int, want int32) error {
	if _, err := a.pool.Port(want); err != nil {
		return apierrors.NewInvalid(serviceGroupKind, a.svc.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), want, err.Error()),
		})
	}
	a.taken.Ports = append(a.taken.Ports, want)
	return nil
}

func (a *serviceAllocation) anyPort(to *int32, failure string) error {
	port, err := a.pool.Port(0)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf(failure, err))
	}
	a.taken.Ports = append(a.taken.Ports, port)
	*to = port
	return nil
}

// healthPort takes the port on which nodes answer load balancers.
func (a *serviceAllocation) healthPort(old *corev1.Service) error {
	if !needsHealthPort(a.svc) || old != nil && needsHealthPort(old) {
		return nil
	}
	want := a.svc.Spec.HealthCheckNodePort
	if want == 0 {
		return a.anyPort(&a.svc.Spec.HealthCheckNodePort, "failed to allocate a HealthCheck NodePort 0: %w")
	}
	if _, err := a.pool.Port(want); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate requested HealthCheck NodePort %v: %w", want, err))
	}
	a.taken.Ports = append(a.taken.Ports, want)
	return nil
}
