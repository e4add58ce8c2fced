package scheduler

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
)

// The resources that every snapshot knows; others get the numbers that follow.
const (
	cpu = iota
	memory
	ephemeralStorage
)

// amount is how much of a resource is asked for: of the CPU in thousandths.
type amount struct {
	resource int
	value    int64
}

// resources numbers the kinds of resources.
type resources struct {
	names   []corev1.ResourceName
	numbers map[corev1.ResourceName]int
}

func newResources() resources {
	r := resources{numbers: map[corev1.ResourceName]int{}}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		r.number(name)
	}
	return r
}

func (r *resources) number(name corev1.ResourceName) int {
	n, known := r.numbers[name]
	if !known {
		n = len(r.names)
		r.names = append(r.names, name)
		r.numbers[name] = n
	}
	return n
}

// amounts returns what a list has, without pods and without what it has none of.
func (r *resources) amounts(list corev1.ResourceList) []amount {
	out := make([]amount, 0, len(list))
	for name, quantity := range list {
		if v := valueOf(name, quantity); v > 0 && name != corev1.ResourcePods {
			out = append(out, amount{r.number(name), v})
		}
	}
	slices.SortFunc(out, func(a, b amount) int { return a.resource - b.resource })
	return out
}

func valueOf(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// What a container that asks for nothing is taken to need when nodes are compared,
// so that such pods do not all go to one.
const (
	littleCPU    = 100               // thousandths
	littleMemory = 200 * 1024 * 1024 // bytes
)

var little = corev1.ResourceList{
	corev1.ResourceCPU:    *resource.NewMilliQuantity(littleCPU, resource.DecimalSI),
	corev1.ResourceMemory: *resource.NewQuantity(littleMemory, resource.BinarySI),
}

// requests returns what a pod needs of a node, and of CPU and memory what it is taken
// to need when nodes are compared.
func (r *resources) requests(pod *corev1.Pod) (needs []amount, weighs [2]int64) {
	options := podresource.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}
	needs = r.amounts(podresource.PodRequests(pod, options))
	options.NonMissingContainerRequests = little
	list := podresource.PodRequests(pod, options)
	weighs[cpu], weighs[memory] = list.Cpu().MilliValue(), list.Memory().Value()
	return needs, weighs
}

// hostPort is a port of a node that a pod takes.
type hostPort struct {
	ip       string // "" is all addresses
	protocol corev1.Protocol
	port     int32
}

func (p hostPort) conflicts(o hostPort) bool {
	return p.port == o.port && p.protocol == o.protocol && (p.ip == o.ip || p.ip == "" || o.ip == "")
}

// hostPorts returns the ports of what runs as long as the pod does.
func hostPorts(spec *corev1.PodSpec) []hostPort {
	var out []hostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				out = append(out, newHostPort(p))
			}
		}
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	return out
}

func newHostPort(p corev1.ContainerPort) hostPort {
	out := hostPort{ip: p.HostIP, protocol: p.Protocol, port: p.HostPort}
	if out.ip == "0.0.0.0" {
		out.ip = ""
	}
	if out.protocol == "" {
		out.protocol = corev1.ProtocolTCP
	}
	return out
}

// imageName is how nodes call an image: with a tag.
func imageName(image string) string {
	if strings.LastIndex(image, ":") <= strings.LastIndex(image, "/") {
		return image + ":latest"
	}
	return image
}
