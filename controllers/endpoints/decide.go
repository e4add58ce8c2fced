package endpoints

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/controllers/pods"
	"github.com/even-keel/evenkeel/controllers/services"
)

// What Endpoints of this controller say of it.
const (
	managedBy = "endpoints.kubernetes.io/managed-by"
	manager   = "endpoint-controller"
)

// leader is an annotation of Endpoints by which programs elect their leader.
const leader = "control-plane.alpha.kubernetes.io/leader"

// capacity is how many addresses Endpoints have; truncated says that there are more.
const (
	capacity  = 1000
	truncated = "truncated"
)

// mine reports whether this controller made Endpoints.
func mine(e *corev1.Endpoints) bool { return e.Labels[managedBy] == manager }

// seen is what there is of a service. Its objects are shared and read-only.
type seen struct {
	service   *corev1.Service   // nil if it is gone
	endpoints *corev1.Endpoints // nil if there are none
	// pods are those that the service selects.
	pods    []*corev1.Pod
	trigger services.Trigger
}

// plan is what is to be done: at most one of both.
type plan struct {
	write  *corev1.Endpoints
	remove bool
}

// decide says what the Endpoints of a service are to be. Those by which others elect
// their leader are never touched.
func decide(s seen) plan {
	switch {
	case s.endpoints != nil && elects(s.endpoints):
		return plan{}
	case s.service == nil:
		return plan{remove: s.endpoints != nil}
	case !services.Selects(s.service):
		return plan{}
	}
	was := s.endpoints
	if was == nil {
		was = &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: s.service.Namespace, Name: s.service.Name}}
	}
	subsets, over := truncate(s.subsets())
	now := was.DeepCopy()
	now.Subsets, now.Labels = subsets, s.labels()
	if s.endpoints != nil && equality.Semantic.DeepEqual(was.Subsets, subsets) && labels.Equals(was.Labels, now.Labels) && isOver(was) == over {
		return plan{}
	}
	now.Annotations = s.trigger.Annotate(now.Annotations)
	delete(now.Annotations, corev1.EndpointsOverCapacity)
	if over {
		now.Annotations[corev1.EndpointsOverCapacity] = truncated
	}
	return plan{write: now}
}

func elects(e *corev1.Endpoints) bool {
	_, ok := e.Annotations[leader]
	return ok
}

func isOver(e *corev1.Endpoints) bool {
	return e.Annotations[corev1.EndpointsOverCapacity] == truncated
}

// labels are those of the service, and those that are reserved.
func (s seen) labels() map[string]string {
	out := map[string]string{}
	maps.Copy(out, s.service.Labels)
	delete(out, corev1.IsHeadlessService)
	if services.Headless(s.service) {
		out[corev1.IsHeadlessService] = ""
	}
	out[managedBy] = manager
	return out
}

// subsets are the addresses of pods, by the ports that the pods have. Their order is
// the same for the same addresses and ports.
func (s seen) subsets() []corev1.EndpointSubset {
	byPorts := map[string]*corev1.EndpointSubset{}
	for _, p := range s.pods {
		address, ok := s.address(p)
		ports := s.ports(p)
		if !ok || len(ports) == 0 && !s.portless() {
			continue
		}
		key := portsKey(ports)
		if byPorts[key] == nil {
			byPorts[key] = &corev1.EndpointSubset{Ports: ports}
		}
		to := &byPorts[key].NotReadyAddresses
		if s.service.Spec.PublishNotReadyAddresses || pods.Ready(p) {
			to = &byPorts[key].Addresses
		}
		*to = append(*to, address)
	}
	var out []corev1.EndpointSubset
	for _, key := range slices.Sorted(maps.Keys(byPorts)) {
		subset := byPorts[key]
		slices.SortFunc(subset.Addresses, byAddress)
		slices.SortFunc(subset.NotReadyAddresses, byAddress)
		out = append(out, *subset)
	}
	return out
}

// portless reports whether it is of no matter which ports pods have.
func (s seen) portless() bool {
	return len(s.service.Spec.Ports) == 0 && s.service.Spec.ClusterIP == corev1.ClusterIPNone
}

func portsKey(ports []corev1.EndpointPort) string {
	var out []string
	for _, p := range ports {
		out = append(out, fmt.Sprintf("%s/%05d/%s", p.Name, p.Port, p.Protocol))
	}
	return strings.Join(out, " ")
}

func byAddress(a, b corev1.EndpointAddress) int {
	return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.TargetRef.UID, b.TargetRef.UID))
}

// address is that of a pod in the first family of the service, if it has one and is
// to be known. Pods that end are not, unless the service wants all.
func (s seen) address(p *corev1.Pod) (corev1.EndpointAddress, bool) {
	all := services.Addresses(p, services.Families(s.service)[0])
	if !services.Member(p) || len(all) == 0 || p.DeletionTimestamp != nil && !s.service.Spec.PublishNotReadyAddresses {
		return corev1.EndpointAddress{}, false
	}
	node := p.Spec.NodeName
	return corev1.EndpointAddress{IP: all[0], Hostname: services.Hostname(p, s.service), NodeName: &node, TargetRef: services.Target(p)}, true
}

// ports are those of the service that a pod has.
func (s seen) ports(p *corev1.Pod) []corev1.EndpointPort {
	var out []corev1.EndpointPort
	for i := range s.service.Spec.Ports {
		of := &s.service.Spec.Ports[i]
		if n, ok := services.Port(p, of); ok {
			out = append(out, corev1.EndpointPort{Name: of.Name, Port: n, Protocol: of.Protocol, AppProtocol: of.AppProtocol})
		}
	}
	slices.SortStableFunc(out, func(a, b corev1.EndpointPort) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// truncate leaves no more addresses than there is room for, and reports whether there
// were more. Those that are ready go first, and each subset has its share.
func truncate(subsets []corev1.EndpointSubset) ([]corev1.EndpointSubset, bool) {
	ready, not := 0, 0
	for _, s := range subsets {
		ready, not = ready+len(s.Addresses), not+len(s.NotReadyAddresses)
	}
	if ready+not <= capacity {
		return subsets, false
	}
	room := capacity
	shorten(subsets, &room, ready, func(s *corev1.EndpointSubset) *[]corev1.EndpointAddress { return &s.Addresses })
	shorten(subsets, &room, not, func(s *corev1.EndpointSubset) *[]corev1.EndpointAddress { return &s.NotReadyAddresses })
	return slices.DeleteFunc(subsets, func(s corev1.EndpointSubset) bool { return len(s.Addresses)+len(s.NotReadyAddresses) == 0 }), true
}

// shorten leaves each list of addresses, which are total together, its share of the
// room, rounded up while there is room, and takes that off the room.
func shorten(subsets []corev1.EndpointSubset, room *int, total int, of func(*corev1.EndpointSubset) *[]corev1.EndpointAddress) {
	share := min(*room, total)
	for i := range subsets {
		list := of(&subsets[i])
		n := len(*list)
		if total > share {
			n = min((n*share+total-1)/total, *room)
		}
		*list = (*list)[:n]
		*room -= n
	}
}
