package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is what is known of a cluster when a decision is taken: nodes, the pods on
// them, and namespaces. Make one with [NewSnapshot]. It is changed in place, and the
// price of a change does not depend on the size of the cluster. It belongs to one
// goroutine. Objects that it is given are only read, and must not change.
type Snapshot struct {
	seed       uint64
	resources  resources
	taints     taintSets
	nodes      []*nodeState // by slot; nil is free
	slots      map[string]int32
	freeSlots  []int32
	pods       map[types.UID]placed
	strays     map[string]map[types.UID]*podInfo // on nodes that are not known
	namespaces map[string]labels.Set
	nominated  map[string][]*podInfo
	tallies    tallies
	held       heldTerms
	topologies map[string]*topology
	images     map[string]*image
	memo       memo
}

// placed is where a pod is.
type placed struct {
	*podInfo
	node string
}

// image is where an image is.
type image struct {
	sizes []int64 // by slot; 0 is that the node does not have it
	nodes int
}

// NewSnapshot returns the snapshot of an empty cluster. Of nodes that are equally
// good, the seed and the name of the pod decide.
func NewSnapshot(seed uint64) *Snapshot {
	return &Snapshot{
		seed: seed, resources: newResources(), taints: taintSets{byText: map[string]*taintSet{}},
		slots: map[string]int32{}, pods: map[types.UID]placed{}, strays: map[string]map[types.UID]*podInfo{},
		namespaces: map[string]labels.Set{}, nominated: map[string][]*podInfo{},
		tallies: newTallies(), held: newHeldTerms(), topologies: map[string]*topology{}, images: map[string]*image{}, memo: newMemo(),
	}
}

// Nodes returns how many nodes there are.
func (s *Snapshot) Nodes() int { return len(s.slots) }

// Pods returns how many pods are on nodes.
func (s *Snapshot) Pods() int { return len(s.pods) }

// SetNode adds a node, or changes it.
func (s *Snapshot) SetNode(node *corev1.Node) { s.setNode(node) }

func (s *Snapshot) setNode(node *corev1.Node) nodeChange {
	slot, known := s.slots[node.Name]
	if !known {
		s.addNode(node)
		return nodeAdded
	}
	n := s.nodes[slot]
	c := compareNodes(n.obj, node)
	if c&nodeLabels != 0 {
		s.regroup()
	}
	if c&nodeTaints != 0 {
		s.taints.released(n.taints)
		n.taints = s.taints.taken(node.Spec.Taints)
	}
	if c&nodeResources != 0 {
		n.setAllocatable(&s.resources, node.Status.Allocatable)
	}
	if c&nodeImages != 0 {
		s.dropImages(n)
	}
	n.obj = node
	if c&nodeImages != 0 {
		s.addImages(n)
	}
	return c
}

func (s *Snapshot) addNode(node *corev1.Node) {
	n := &nodeState{obj: node, slot: int32(len(s.nodes)), taints: s.taints.taken(node.Spec.Taints)}
	if last := len(s.freeSlots) - 1; last >= 0 {
		n.slot, s.freeSlots = s.freeSlots[last], s.freeSlots[:last]
	}
	s.nodes = grown(s.nodes, n.slot)
	s.nodes[n.slot] = n
	s.slots[node.Name] = n.slot
	s.regroup()
	n.setAllocatable(&s.resources, node.Status.Allocatable)
	s.addImages(n)
	for _, p := range s.strays[node.Name] {
		s.attach(n, p)
	}
	delete(s.strays, node.Name)
}

// RemoveNode removes a node. Pods on it count again when it comes back.
func (s *Snapshot) RemoveNode(name string) {
	slot, known := s.slots[name]
	if !known {
		return
	}
	n := s.nodes[slot]
	for len(n.pods) > 0 {
		p := n.pods[len(n.pods)-1]
		s.detach(n, p)
		s.stray(name, p)
	}
	s.dropImages(n)
	s.taints.released(n.taints)
	s.regroup()
	delete(s.slots, name)
	s.nodes[slot] = nil
	s.freeSlots = append(s.freeSlots, slot)
}

// SetPod adds a pod that is on a node, or changes it. One that has ended, or is on no
// node, is removed.
func (s *Snapshot) SetPod(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || ended(pod) {
		s.RemovePod(pod.UID)
		return
	}
	s.Place(pod, pod.Spec.NodeName)
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Place takes a pod to be on a node, whatever itself says.
func (s *Snapshot) Place(pod *corev1.Pod, node string) { s.place(s.inspect(pod), node) }

func (s *Snapshot) place(p *podInfo, node string) {
	s.RemovePod(p.pod.UID)
	s.pods[p.pod.UID] = placed{p, node}
	if slot, known := s.slots[node]; known {
		s.attach(s.nodes[slot], p)
		return
	}
	s.stray(node, p)
}

func (s *Snapshot) stray(node string, p *podInfo) {
	if s.strays[node] == nil {
		s.strays[node] = map[types.UID]*podInfo{}
	}
	s.strays[node][p.pod.UID] = p
}

// RemovePod removes a pod from the node that it is on, if it is on one.
func (s *Snapshot) RemovePod(uid types.UID) {
	p, known := s.pods[uid]
	if !known {
		return
	}
	delete(s.pods, uid)
	if slot, known := s.slots[p.node]; known {
		s.detach(s.nodes[slot], p.podInfo)
		return
	}
	if delete(s.strays[p.node], uid); len(s.strays[p.node]) == 0 {
		delete(s.strays, p.node)
	}
}

func (s *Snapshot) attach(n *nodeState, p *podInfo) {
	n.add(p)
	s.held.add(n.slot, p, 1)
	s.tallies.about(s, p, func(t *tally) { t.add(n.slot, p, 1) })
}

func (s *Snapshot) detach(n *nodeState, p *podInfo) {
	n.remove(p)
	s.held.add(n.slot, p, -1)
	s.tallies.about(s, p, func(t *tally) { t.add(n.slot, p, -1) })
}

// SetNamespace adds a namespace, or changes its labels.
func (s *Snapshot) SetNamespace(name string, of map[string]string) {
	s.namespaces[name] = of
	s.tallies.keep(func(t *tally) bool { return !t.sel.byNamespace })
}

// RemoveNamespace removes a namespace.
func (s *Snapshot) RemoveNamespace(name string) {
	delete(s.namespaces, name)
	s.tallies.keep(func(t *tally) bool { return !t.sel.byNamespace })
}

// Nominate keeps room for a pod on a node that others are about to leave: pods that
// are not more important do not get it. "" is no node.
func (s *Snapshot) Nominate(pod *corev1.Pod, node string) {
	s.denominate(pod.UID)
	if node != "" {
		s.nominated[node] = append(s.nominated[node], s.inspect(pod))
	}
}

func (s *Snapshot) denominate(uid types.UID) {
	for node, list := range s.nominated {
		for i, p := range list {
			if p.pod.UID != uid {
				continue
			}
			if list = append(list[:i:i], list[i+1:]...); len(list) == 0 {
				delete(s.nominated, node)
			} else {
				s.nominated[node] = list
			}
			return
		}
	}
}

func (s *Snapshot) addImages(n *nodeState) {
	eachImage(n, func(name string, size int64) {
		i := s.images[name]
		if i == nil {
			i = &image{}
			s.images[name] = i
		}
		if i.sizes = grown(i.sizes, n.slot); i.sizes[n.slot] == 0 {
			i.sizes[n.slot] = size
			i.nodes++
		}
	})
}

func (s *Snapshot) dropImages(n *nodeState) {
	eachImage(n, func(name string, _ int64) {
		i := s.images[name]
		if i == nil || at(i.sizes, int(n.slot)) == 0 {
			return // named twice
		}
		i.sizes[n.slot] = 0
		if i.nodes--; i.nodes == 0 {
			delete(s.images, name)
		}
	})
}

func eachImage(n *nodeState, do func(name string, size int64)) {
	for _, i := range n.obj.Status.Images {
		for _, name := range i.Names {
			if i.SizeBytes > 0 {
				do(name, i.SizeBytes)
			}
		}
	}
}

// topology is which nodes have the same value of a label.
type topology struct {
	domains []int32 // by slot; -1 is that the node does not have the label
	count   int
}

// regroup forgets what depends on which nodes there are, and on their labels.
func (s *Snapshot) regroup() {
	clear(s.topologies)
	s.memo.clear()
}

func (s *Snapshot) topology(key string) *topology {
	t := s.topologies[key]
	if t != nil {
		return t
	}
	t = &topology{domains: make([]int32, len(s.nodes))}
	numbers := map[string]int32{}
	for slot, n := range s.nodes {
		t.domains[slot] = -1
		if n == nil {
			continue
		}
		value, has := n.obj.Labels[key]
		if !has {
			continue
		}
		number, known := numbers[value]
		if !known {
			number = int32(len(numbers))
			numbers[value] = number
		}
		t.domains[slot] = number
	}
	t.count = len(numbers)
	s.topologies[key] = t
	return t
}
