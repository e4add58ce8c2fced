package node

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// facts are what the downward API tells besides what the pod says itself.
type facts struct {
	hostIPs, podIPs []string
	allocatable     corev1.ResourceList
}

func (a *Agent) facts(pod *corev1.Pod) facts {
	f := facts{hostIPs: a.nodes.hostIPs(pod.Spec.NodeName), allocatable: a.runtime.Machine(pod.Spec.NodeName).Allocatable}
	seen, _ := a.runtime.Observe(idOf(pod))
	if f.podIPs = seen.IPs; pod.Spec.HostNetwork {
		f.podIPs = f.hostIPs
	}
	return f
}

// field is a field of the pod, as a text.
func (f facts) field(pod *corev1.Pod, path string) (string, error) {
	name, key, subscripted := strings.Cut(strings.TrimSuffix(path, "']"), "['")
	switch name {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return mapField(pod.Labels, key, subscripted), nil
	case "metadata.annotations":
		return mapField(pod.Annotations, key, subscripted), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return first(f.hostIPs), nil
	case "status.hostIPs":
		return strings.Join(f.hostIPs, ","), nil
	case "status.podIP":
		return first(f.podIPs), nil
	case "status.podIPs":
		return strings.Join(f.podIPs, ","), nil
	}
	return "", &Failure{ReasonConfig, fmt.Sprintf("unsupported fieldPath: %s", path)}
}

func first(of []string) string {
	if len(of) == 0 {
		return ""
	}
	return of[0]
}

// mapField is the value of a key or, without one, all keys with their values, a line
// each.
func mapField(m map[string]string, key string, subscripted bool) string {
	if subscripted {
		return m[key]
	}
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, k+"="+strconv.Quote(m[k]))
	}
	return strings.Join(lines, "\n")
}

// resource is an amount that a container has. Without a limit, that is what the node
// has.
func (f facts) resource(pod *corev1.Pod, of *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	if ref.ContainerName != "" {
		of = containerNamed(pod, ref.ContainerName)
	}
	side, name, _ := strings.Cut(ref.Resource, ".")
	if of == nil || side != "limits" && side != "requests" {
		return "", &Failure{ReasonConfig, fmt.Sprintf("unsupported container resource: %s of container %q", ref.Resource, ref.ContainerName)}
	}
	amounts := of.Resources.Limits
	if side == "requests" {
		amounts = of.Resources.Requests
	}
	amount, set := amounts[corev1.ResourceName(name)]
	if !set && side == "limits" {
		amount = f.allocatable[corev1.ResourceName(name)]
	}
	return divided(amount, ref.Divisor, name), nil
}

func containerNamed(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// divided is an amount in units of a divisor, rounded up.
func divided(amount, by resource.Quantity, name string) string {
	if by.IsZero() {
		by = resource.MustParse("1")
	}
	if name == string(corev1.ResourceCPU) {
		return strconv.FormatInt(int64(math.Ceil(float64(amount.MilliValue())/float64(by.MilliValue()))), 10)
	}
	return strconv.FormatInt(int64(math.Ceil(float64(amount.Value())/float64(by.Value()))), 10)
}
