package nodelifecycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// seen is what there is. Its objects are shared and read-only.
type seen struct {
	nodes  []*corev1.Node
	leases map[string]*coordinationv1.Lease // by node
	memory memory
	now    time.Time
}

// memory is what is remembered from one look to the next.
type memory struct {
	nodes map[string]record
	// tainted is when a node of a zone was last tainted for eviction.
	tainted map[string]time.Time
	// down says that no node was ready.
	down bool
}

// plan is what is to be done.
type plan struct {
	changes []change
	told    []notice
	memory  memory
}

// change is what is to be written of a node.
type change struct {
	node    *corev1.Node
	status  *corev1.NodeStatus // nil is as it is
	lost    bool               // by that the node ceases to be ready
	retaint bool
	taints  []corev1.Taint
}

// notice is an event.
type notice struct {
	about        *corev1.Node
	reason, text string
}

// decide says which nodes are silent, and which are to have taints by which their pods
// are evicted.
func decide(s seen) plan {
	do := plan{memory: memory{nodes: map[string]record{}, tainted: maps.Clone(s.memory.tainted)}}
	if do.memory.tainted == nil {
		do.memory.tainted = map[string]time.Time{}
	}
	nodes := slices.SortedFunc(slices.Values(s.nodes), func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	changes := make([]change, len(nodes))
	for i, node := range nodes {
		changes[i], nodes[i] = do.health(s, node)
	}
	do.census(s)
	zones := count(nodes)
	if do.memory.down = allDown(zones); s.memory.down && !do.memory.down {
		do.listenAnew(s.now)
	}
	for _, i := range evictionOrder(nodes) {
		changes[i].taints, changes[i].retaint = do.taints(nodes[i], zones, s.now)
	}
	do.changes = slices.DeleteFunc(changes, func(c change) bool { return c.status == nil && !c.retaint })
	return do
}

// health says whether a node is silent, and returns the node as it is then.
func (do *plan) health(s seen, node *corev1.Node) (change, *corev1.Node) {
	r := s.memory.nodes[node.Name].hear(node, s.leases[node.Name], s.now)
	do.memory.nodes[node.Name] = r
	c := change{node: node}
	if !r.silent(node, s.now) {
		return c, node
	}
	if c.status = doubt(node, s.now); c.status == nil {
		return c, node
	}
	c.lost = readiness(node) == corev1.ConditionTrue
	after := *node
	after.Status = *c.status
	return c, &after
}

// census tells of nodes that have come and gone.
func (do *plan) census(s seen) {
	for _, node := range s.nodes {
		if _, ok := s.memory.nodes[node.Name]; !ok {
			do.tell(node, "RegisteredNode", "Registered Node %s in Controller")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.memory.nodes)) {
		if _, ok := do.memory.nodes[name]; !ok {
			gone := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: s.memory.nodes[name].uid}}
			do.tell(gone, "RemovingNode", "Removing Node %s from Controller")
		}
	}
}

func (do *plan) tell(node *corev1.Node, reason, format string) {
	do.told = append(do.told, notice{node, reason, fmt.Sprintf("Node %s event: "+format, node.Name, node.Name)})
}

// listenAnew is for when some nodes are heard of after none was: the others have their
// time, too.
func (do *plan) listenAnew(now time.Time) {
	for name, r := range do.memory.nodes {
		r.heard = now
		do.memory.nodes[name] = r
	}
}

// evictionOrder has the nodes that have not been ready for longest first.
func evictionOrder(nodes []*corev1.Node) []int {
	since := func(i int) time.Time {
		if c := conditionOf(nodes[i], corev1.NodeReady); c != nil {
			return c.LastTransitionTime.Time
		}
		return time.Time{}
	}
	out := make([]int, len(nodes))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(a, b int) int { return since(a).Compare(since(b)) })
	return out
}

// evicting is the taint for a readiness; "" for those of whom nobody is evicted.
var evicting = map[corev1.ConditionStatus]string{
	corev1.ConditionFalse: corev1.TaintNodeNotReady, corev1.ConditionUnknown: corev1.TaintNodeUnreachable,
}

// taints are what the taints of a node are to be, and whether they are not: those for
// eviction follow its readiness, the first of them when it is the zone's turn.
func (do *plan) taints(node *corev1.Node, zones map[string]census, now time.Time) ([]corev1.Taint, bool) {
	status := readiness(node)
	if status == "" {
		return nil, false // nobody knows anything yet
	}
	want, has := evicting[status], false
	if do.memory.down {
		want = ""
	}
	kept := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
		ours := t.Effect == corev1.TaintEffectNoExecute && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable)
		has = has || ours && t.Key == want
		return ours && t.Key != want
	})
	switch {
	case want == "" || has:
		return kept, len(kept) != len(node.Spec.Taints)
	case len(kept) == len(node.Spec.Taints) && !do.turn(zoneOf(node), zones, now):
		return nil, false
	}
	return append(kept, corev1.Taint{Key: want, Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: now}}), true
}

// turn reports whether a node of a zone may be tainted for eviction now, and takes the
// turn.
func (do *plan) turn(zone string, zones map[string]census, now time.Time) bool {
	pace := zones[zone].pace()
	if pace == 0 || now.Sub(do.memory.tainted[zone]) < pace {
		return false
	}
	do.memory.tainted[zone] = now
	return true
}
