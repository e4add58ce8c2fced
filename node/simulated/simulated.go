// Package simulated is a runtime in which nothing runs: pods go through their life
// as if, with delays and failures that can be set for all or by annotations of a
// pod. It has no goroutine and no timer: what a container is follows from the time.
//
// Annotations are for all containers of a pod; with the name of a container after a
// slash and a dot, as in evenkeel.dev/run-for.app, they are for that one:
//
//	evenkeel.dev/start-delay   how long a container takes to start
//	evenkeel.dev/run-for       how long it runs; without it, until it is stopped
//	evenkeel.dev/exit-code     how it ends then, 0 by default
//	evenkeel.dev/stop-delay    how long it takes to end when it is told to
//	evenkeel.dev/stop-code     how it ends then, 0 by default
//	evenkeel.dev/fail-start    it does not start: the text is why
//	evenkeel.dev/fail-probe    probes that fail: startup, liveness, readiness or all
//
// Durations are written as Go does, such as 1m30s. What cannot be read keeps the
// container from starting, and its status says so.
package simulated

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/even-keel/evenkeel/node"
)

// Options say what nodes and containers are like that do not say it themselves.
type Options struct {
	// Capacity is that of each node: 32 CPUs, 256 Gi, 110 pods.
	Capacity corev1.ResourceList
	// Pods is where the addresses of pods are from: 10.128.0.0/9.
	Pods netip.Prefix
	// Address is that of all nodes, at which the agent is reached: 127.0.0.1.
	Address string
	// Life is how containers behave.
	Life Life
	// Port is what nodes say they serve logs at; 0 is nowhere.
	Port int32
	// Version is what nodes say is their kubelet's.
	Version string
}

// Life is how a container behaves. Zero starts at once and runs until it is told to
// end, which it does at once and well.
type Life struct {
	StartDelay, RunFor, StopDelay time.Duration
	ExitCode, StopCode            int32
	// FailStart is why it does not start.
	FailStart string
	// FailProbes are those that fail, of startup, liveness and readiness; "all" is all.
	FailProbes string
}

// Runtime is a [node.Runtime] in which nothing runs. Make one with [New].
type Runtime struct {
	options  Options
	podIPs   *addresses
	capacity corev1.ResourceList

	mu      sync.Mutex
	pods    map[node.PodID]*pod
	changed func(node.PodID)
	broken  map[string]string // why nodes are not ready, by name
}

// pod is what there is of a pod.
type pod struct {
	annotations map[string]string // shared, read-only
	ip          netip.Addr
	containers  []container
}

// New returns a runtime without pods.
func New(o Options) *Runtime {
	if !o.Pods.IsValid() {
		o.Pods = netip.MustParsePrefix("10.128.0.0/9")
	}
	o.Address = cmp.Or(o.Address, "127.0.0.1")
	if o.Version == "" {
		o.Version = "v1.37.0-evenkeel"
	}
	r := &Runtime{
		options: o, podIPs: newAddresses(o.Pods),
		capacity: o.Capacity, pods: map[node.PodID]*pod{}, broken: map[string]string{},
	}
	if r.capacity == nil {
		r.capacity = corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse("32"),
			corev1.ResourceMemory:           resource.MustParse("256Gi"),
			corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
			corev1.ResourcePods:             resource.MustParse("110"),
		}
	}
	return r
}

// Name is "simulated".
func (*Runtime) Name() string { return "simulated" }

// Files is false: nobody reads them.
func (*Runtime) Files() bool { return false }

// Machine tells what a node pretends to have.
func (r *Runtime) Machine(name string) node.Machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return node.Machine{
		Capacity: r.capacity, Allocatable: r.capacity, Port: r.options.Port, NotReady: r.broken[name],
		Info: corev1.NodeSystemInfo{
			OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH, OSImage: "Evenkeel (simulated)",
			KubeletVersion: r.options.Version, ContainerRuntimeVersion: "simulated://1",
		},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: r.options.Address},
			{Type: corev1.NodeHostName, Address: name},
		},
	}
}

// Break has a node be not ready, for a reason; "" heals it. The node tells so with
// its next heartbeat.
func (r *Runtime) Break(name, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken[name] = why
}

// Run waits for ctx to end: there is nothing to do.
func (r *Runtime) Run(ctx context.Context, changed func(node.PodID)) error {
	r.mu.Lock()
	r.changed = changed
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	r.changed = nil
	r.mu.Unlock()
	return nil
}

// Pods are those that were prepared and not removed.
func (r *Runtime) Pods() []node.PodID {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]node.PodID, 0, len(r.pods))
	for id := range r.pods {
		out = append(out, id)
	}
	return out
}

// Prepare gives a pod an address. Containers that run according to the pod's status
// go on: they are as real as before.
func (r *Runtime) Prepare(_ context.Context, p node.Pod) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was := r.pods[p.ID]; was != nil {
		was.annotations = p.Object.Annotations
		return nil
	}
	now := &pod{annotations: p.Object.Annotations}
	if !p.Object.Spec.HostNetwork {
		ip, err := r.podIPs.take(p.Object.Status.PodIP)
		if err != nil {
			return err
		}
		now.ip = ip
	}
	for _, list := range [][]corev1.ContainerStatus{p.Object.Status.InitContainerStatuses, p.Object.Status.ContainerStatuses} {
		for i := range list {
			if list[i].State.Running != nil {
				now.containers = append(now.containers, r.adopt(p, &list[i]))
			}
		}
	}
	r.pods[p.ID] = now
	return nil
}

// Remove forgets a pod.
func (r *Runtime) Remove(_ context.Context, id node.PodID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[id]; p != nil {
		r.podIPs.give(p.ip)
		delete(r.pods, id)
	}
	return nil
}

// Start has a container be started, which takes as long as its life says.
func (r *Runtime) Start(_ context.Context, id node.PodID, c node.Container) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[id]
	if p == nil {
		return fmt.Errorf("start %s of %s: %w", c.Spec.Name, id.Key, node.ErrUnknownPod)
	}
	life, err := r.lifeOf(p.annotations, c.Spec.Name)
	switch {
	case err != nil:
		return &node.Failure{Reason: node.ReasonConfig, Message: err.Error()}
	case life.FailStart != "":
		return &node.Failure{Reason: node.ReasonRun, Message: life.FailStart}
	}
	next := begun(c.Spec.Name, idFor(id, c.Spec.Name, c.Attempt), c.Attempt, life, time.Now().Add(life.StartDelay))
	if old := p.find(c.Spec.Name); old != nil {
		next.last = old.state(time.Now()).Exit
		*old = next
	} else {
		p.containers = append(p.containers, next)
	}
	return nil
}

// Stop has a container end as its life says, or be killed when its time is up.
func (r *Runtime) Stop(id node.PodID, name string, s node.Stop) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[id]
	if p == nil {
		return
	}
	life, err := r.lifeOf(p.annotations, name)
	if c := p.find(name); c != nil && err == nil {
		c.stop(time.Now(), s.Grace, life)
	}
}

// Observe tells what a pod is now.
func (r *Runtime) Observe(id node.PodID) (node.Observed, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[id]
	if p == nil {
		return node.Observed{}, false
	}
	now := time.Now()
	out := node.Observed{Containers: make([]node.ContainerState, 0, len(p.containers))}
	if p.ip.IsValid() {
		out.IPs = []string{p.ip.String()}
	}
	for i := range p.containers {
		c := &p.containers[i]
		out.Containers = append(out.Containers, c.state(now))
		if at := c.next(now); !at.IsZero() && (out.Next.IsZero() || at.Before(out.Next)) {
			out.Next = at
		}
	}
	return out, true
}

// Exit has a container end now, as if by itself.
func (r *Runtime) Exit(id node.PodID, name string, code int32) {
	r.mu.Lock()
	changed := r.changed
	if p := r.pods[id]; p != nil {
		if c := p.find(name); c != nil {
			c.end(time.Now(), code)
		}
	}
	r.mu.Unlock()
	if changed != nil {
		changed(id)
	}
}

// Probe answers as the pod's annotations say.
func (r *Runtime) Probe(_ context.Context, id node.PodID, name string, p node.Probe) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.pods[id]
	if of == nil {
		return fmt.Errorf("probe %s of %s: %w", name, id.Key, node.ErrUnknownPod)
	}
	c := of.find(name)
	if c == nil || c.state(time.Now()).Phase != node.Running {
		return fmt.Errorf("probe %s of %s: %w", name, id.Key, node.ErrUnknownContainer)
	}
	life, err := r.lifeOf(of.annotations, name)
	if err != nil {
		return err
	}
	if f := strings.ToLower(life.FailProbes); f == "all" || strings.Contains(f, strings.ToLower(string(p.Kind))) {
		return fmt.Errorf("%w: the simulation has it fail", node.ErrUnhealthy)
	}
	return nil
}
