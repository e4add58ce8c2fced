package nodelifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// How many nodes of a zone are tainted for eviction in a time.
const (
	eviction = 10 * time.Second  // one each
	slow     = 100 * time.Second // one each, where much of a large zone is not ready
	large    = 50                // nodes; smaller zones wait until more are ready
	disease  = 0.55              // of the nodes of a zone is much
)

// exempt is a label of nodes that do not count when it is asked how much of a zone is
// ready.
const exempt = "node.kubernetes.io/exclude-disruption"

// census counts the nodes of a zone.
type census struct{ ready, not int }

// zoneOf names the zone of a node: names of zones may be the same in two regions.
func zoneOf(node *corev1.Node) string {
	return node.Labels[corev1.LabelTopologyRegion] + "/" + node.Labels[corev1.LabelTopologyZone]
}

// count counts the nodes of all zones.
func count(nodes []*corev1.Node) map[string]census {
	out := map[string]census{}
	for _, n := range nodes {
		if _, ok := n.Labels[exempt]; ok {
			continue
		}
		c := out[zoneOf(n)]
		if readiness(n) == corev1.ConditionTrue {
			c.ready++
		} else {
			c.not++
		}
		out[zoneOf(n)] = c
	}
	return out
}

// allDown reports whether no node of any zone is ready.
func allDown(zones map[string]census) bool {
	for _, c := range zones {
		if c.ready > 0 {
			return false
		}
	}
	return len(zones) > 0
}

// pace is how long it takes from one eviction in a zone to the next; 0 is forever. A
// zone of which nothing is ready is evicted as one that is well: it is cut off.
func (c census) pace() time.Duration {
	sick := c.not > 2 && c.ready > 0 && float64(c.not) >= disease*float64(c.ready+c.not)
	switch {
	case !sick:
		return eviction
	case c.ready+c.not > large:
		return slow
	}
	return 0
}
