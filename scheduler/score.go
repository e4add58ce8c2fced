package scheduler

import "math"

// What each way to compare nodes weighs, and the most that each gives.
const (
	weighsTaints   = 3
	weighsNode     = 2
	weighsSpread   = 2
	weighsAffinity = 2
	most           = 100
)

// scores are of nodes that would do, in their order.
type scores struct {
	total []int64
	raw   []int64 // of one way to compare, before it is brought to 0 to 100
}

// score compares nodes on which the pod may be.
func (pl *plan) score(nodes []*nodeState) []int64 {
	sc := scores{total: make([]int64, len(nodes)), raw: make([]int64, len(nodes))}
	asks := pl.asksCPUOrMemory()
	for i, n := range nodes {
		sc.total[i] = leastAllocated(pl.pod, n)
		if asks {
			sc.total[i] += balanced(pl.pod, n)
		}
	}
	pl.scoreImages(nodes, &sc)
	pl.scoreTaints(nodes, &sc)
	pl.scoreLikes(nodes, &sc)
	pl.scoreAffinity(nodes, &sc)
	pl.scoreSpread(nodes, &sc)
	return sc.total
}

func (pl *plan) asksCPUOrMemory() bool {
	needs := pl.pod.needs
	return len(needs) > 0 && needs[0].resource <= memory
}

// leastAllocated is how much would be left, on average of CPU and memory.
func leastAllocated(p *podInfo, n *nodeState) int64 {
	var score, kinds int64
	for r := range p.weighs {
		alloc := n.alloc[r]
		if alloc == 0 {
			continue
		}
		kinds++
		if used := n.weighs[r] + p.weighs[r]; used <= alloc {
			score += (alloc - used) * most / alloc
		}
	}
	if kinds == 0 {
		return 0
	}
	return score / kinds
}

// balanced is how alike the used parts of CPU and memory would be.
func balanced(p *podInfo, n *nodeState) int64 {
	var parts [2]float64
	for r := range parts {
		if n.alloc[r] == 0 {
			return most // there is nothing to compare with
		}
		parts[r] = float64(at(n.used, r))
	}
	for _, a := range p.needs {
		if a.resource <= memory {
			parts[a.resource] += float64(a.value)
		}
	}
	for r := range parts {
		parts[r] = min(1, parts[r]/float64(n.alloc[r]))
	}
	return int64((1 - math.Abs(parts[0]-parts[1])/2) * most)
}

// The sizes of images below which it does not matter whether a node has them, and
// above which it does not matter how large they are.
const (
	smallImage = 23 << 20
	largeImage = 1000 << 20
)

// scoreImages prefers nodes that have the pod's images; one that few nodes have counts
// less, so that not all pods go there.
func (pl *plan) scoreImages(nodes []*nodeState, sc *scores) {
	clear(sc.raw)
	found := false
	for _, name := range pl.pod.images {
		image := pl.s.images[name]
		if image == nil {
			continue
		}
		found = true
		spread := float64(image.nodes) / float64(len(pl.s.slots))
		for i, n := range nodes {
			sc.raw[i] += int64(float64(at(image.sizes, int(n.slot))) * spread)
		}
	}
	if !found {
		return
	}
	largest := int64(largeImage * len(pl.pod.images))
	for i, size := range sc.raw {
		sc.total[i] += most * (max(smallImage, min(size, largest)) - smallImage) / (largest - smallImage)
	}
}

// scoreTaints prefers nodes with few soft taints that are not tolerated.
func (pl *plan) scoreTaints(nodes []*nodeState, sc *scores) {
	var highest int64
	for i, n := range nodes {
		sc.raw[i] = int64(pl.tolerates(n).soft)
		highest = max(highest, sc.raw[i])
	}
	if highest == 0 {
		return
	}
	for i, v := range sc.raw {
		sc.total[i] += weighsTaints * (most - most*v/highest)
	}
}

// scoreLikes prefers nodes that the pod would like.
func (pl *plan) scoreLikes(nodes []*nodeState, sc *scores) {
	if pl.pod.likes == nil {
		return
	}
	liked := remembered(pl.s.memo.liked, pl.pod.likesText, len(pl.s.nodes))
	var highest int64
	for i, n := range nodes {
		if liked[n.slot] == 0 {
			liked[n.slot] = pl.pod.likes.Score(n.obj) + 1
		}
		sc.raw[i] = liked[n.slot] - 1
		highest = max(highest, sc.raw[i])
	}
	if highest == 0 {
		return
	}
	for i, v := range sc.raw {
		sc.total[i] += weighsNode * (most * v / highest)
	}
}

// scoreAffinity prefers domains of pods that the pod, or that themselves, want it to
// be near to.
func (pl *plan) scoreAffinity(nodes []*nodeState, sc *scores) {
	var all []domains
	in := func(key string) *domains {
		for i := range all {
			if all[i].key == key {
				return &all[i]
			}
		}
		all = append(all, pl.newDomains(key))
		return &all[len(all)-1]
	}
	for _, w := range pl.pod.preferred {
		d, counts := in(w.topology), pl.s.count(w.sel).all
		for slot, n := range counts {
			if at := d.topology.domains[slot]; n != 0 && at >= 0 {
				d.counts[at] += n * int32(w.weight)
			}
		}
	}
	pl.s.held.about(pl.s, pl.pod, func(h *held) {
		if h.role != requiresApart {
			sum(in(h.topology), h.weights)
		}
	})
	if len(all) > 0 {
		pl.addAffinity(nodes, sc, all)
	}
}

func (pl *plan) addAffinity(nodes []*nodeState, sc *scores, all []domains) {
	lowest, highest := int64(math.MaxInt64), int64(math.MinInt64)
	for i, n := range nodes {
		sc.raw[i] = 0
		for j := range all {
			sc.raw[i] += int64(all[j].at(n))
		}
		lowest, highest = min(lowest, sc.raw[i]), max(highest, sc.raw[i])
	}
	if highest == lowest {
		return
	}
	for i, v := range sc.raw {
		sc.total[i] += weighsAffinity * int64(most*(float64(v-lowest)/float64(highest-lowest)))
	}
}

// scoreSpread prefers domains with few pods of those that the pod would like to be
// spread with. Nodes without the labels come last.
func (pl *plan) scoreSpread(nodes []*nodeState, sc *scores) {
	if len(pl.pod.soft) == 0 {
		return
	}
	all := pl.planSpread(pl.pod.soft)
	weights := make([]float64, len(all))
	for i := range all {
		weights[i] = math.Log(float64(all[i].among(nodes, all) + 2))
	}
	lowest, highest := int64(math.MaxInt64), int64(0)
	for i, n := range nodes {
		if sc.raw[i] = -1; !hasTopologies(all, n) {
			continue
		}
		score := 0.0
		for j := range all {
			c := &all[j]
			score += float64(c.counts[c.topology.domains[n.slot]])*weights[j] + float64(c.maxSkew-1)
		}
		sc.raw[i] = int64(math.Round(score))
		lowest, highest = min(lowest, sc.raw[i]), max(highest, sc.raw[i])
	}
	for i, v := range sc.raw {
		switch {
		case v < 0:
		case highest == 0:
			sc.total[i] += weighsSpread * most
		default:
			sc.total[i] += weighsSpread * (most * (highest + lowest - v) / highest)
		}
	}
}

// among returns how many domains nodes are in.
func (c *spreading) among(nodes []*nodeState, all []spreading) int {
	seen, count := make([]bool, c.topology.count), 0
	for _, n := range nodes {
		if !hasTopologies(all, n) {
			continue
		}
		if d := c.topology.domains[n.slot]; !seen[d] {
			seen[d] = true
			count++
		}
	}
	return count
}
