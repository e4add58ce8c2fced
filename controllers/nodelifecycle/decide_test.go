package nodelifecycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// after is noon and some seconds.
func after(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// node is one that told a readiness at noon; "" is none.
func node(name string, ready corev1.ConditionStatus, taints ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon)}}
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.NewTime(noon), LastTransitionTime: metav1.NewTime(noon)}}
	}
	for _, t := range taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: t, Effect: corev1.TaintEffectNoExecute})
	}
	return n
}

func inZone(n *corev1.Node, zone string) *corev1.Node {
	n.Labels = map[string]string{corev1.LabelTopologyZone: zone}
	return n
}

func lease(at time.Time) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(at)
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
}

// look is one look at nodes.
func look(m memory, at time.Time, leases map[string]*coordinationv1.Lease, nodes ...*corev1.Node) plan {
	return decide(seen{nodes: nodes, leases: leases, memory: m, now: at})
}

func TestSilentNodesAreUnknown(t *testing.T) {
	beat := func(seconds int) *corev1.Node {
		n := node("a", corev1.ConditionTrue)
		n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(after(seconds))
		return n
	}
	renewed := func(seconds int) map[string]*coordinationv1.Lease {
		return map[string]*coordinationv1.Lease{"a": lease(after(seconds))}
	}
	type at struct {
		second int
		node   *corev1.Node
		leases map[string]*coordinationv1.Lease
		reason string // "" is that it is not doubted
	}
	for name, looks := range map[string][]at{
		"status alone":              {{0, beat(0), nil, ""}, {40, beat(0), nil, ""}, {41, beat(0), nil, "NodeStatusUnknown"}},
		"a new status":              {{0, beat(0), nil, ""}, {30, beat(30), nil, ""}, {70, beat(30), nil, ""}, {71, beat(30), nil, "NodeStatusUnknown"}},
		"a lease alone":             {{0, beat(0), renewed(0), ""}, {39, beat(0), renewed(39), ""}, {78, beat(0), renewed(39), ""}, {80, beat(0), renewed(39), "NodeStatusUnknown"}},
		"the clock of another":      {{0, beat(-900), renewed(-900), ""}, {39, beat(-900), renewed(-899), ""}, {78, beat(-900), renewed(-899), ""}, {80, beat(-900), renewed(-899), "NodeStatusUnknown"}},
		"a lease that goes back":    {{0, beat(0), renewed(9), ""}, {39, beat(0), renewed(0), ""}, {41, beat(0), renewed(0), "NodeStatusUnknown"}},
		"a lease that goes":         {{0, beat(0), renewed(0), ""}, {39, beat(0), nil, ""}, {41, beat(0), nil, "NodeStatusUnknown"}},
		"never told":                {{0, node("a", ""), nil, ""}, {60, node("a", ""), nil, ""}, {61, node("a", ""), nil, "NodeStatusNeverUpdated"}},
		"never told, seen late":     {{300, node("a", ""), nil, "NodeStatusNeverUpdated"}},
		"never told, but a lease":   {{300, node("a", ""), renewed(0), ""}, {359, node("a", ""), renewed(0), ""}, {361, node("a", ""), renewed(0), "NodeStatusNeverUpdated"}},
		"told late":                 {{0, node("a", ""), nil, ""}, {50, beat(50), nil, ""}, {90, beat(50), nil, ""}, {91, beat(50), nil, "NodeStatusUnknown"}},
		"seen first after it ended": {{900, beat(0), renewed(0), ""}, {940, beat(0), renewed(0), ""}, {941, beat(0), renewed(0), "NodeStatusUnknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			var m memory
			for _, l := range looks {
				do := look(m, after(l.second), l.leases, l.node)
				m = do.memory
				got := ""
				for _, c := range do.changes {
					if c.status != nil {
						got = c.status.Conditions[0].Reason
					}
				}
				if got != l.reason {
					t.Fatalf("at %d s: %q, want %q", l.second, got, l.reason)
				}
			}
		})
	}
}

func TestWhatIsDoubtedOfANode(t *testing.T) {
	n := node("a", corev1.ConditionTrue)
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}, corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse})
	status := doubt(n, after(50))
	got := ""
	for _, c := range status.Conditions {
		got += fmt.Sprintf("%s=%s %s; ", c.Type, c.Status, c.Reason)
	}
	const want = "Ready=Unknown NodeStatusUnknown; DiskPressure=Unknown NodeStatusUnknown; NetworkUnavailable=False ; MemoryPressure=Unknown NodeStatusNeverUpdated; PIDPressure=Unknown NodeStatusNeverUpdated; "
	if got != want {
		t.Errorf("conditions are\n%s, want\n%s", got, want)
	}
	if c := status.Conditions[0]; c.Message != "Kubelet stopped posting node status." || !c.LastTransitionTime.Time.Equal(after(50)) || !c.LastHeartbeatTime.Time.Equal(noon) {
		t.Errorf("condition %+v", c)
	}
	n.Status = *status
	if again := doubt(n, after(60)); again != nil {
		t.Errorf("it is doubted again: %v", again.Conditions)
	}
}

func TestNodesComeAndGo(t *testing.T) {
	do := look(memory{}, noon, nil, node("b", corev1.ConditionTrue), node("a", ""))
	do2 := look(do.memory, after(5), nil, node("b", corev1.ConditionTrue))
	got := ""
	for _, n := range append(do.told, do2.told...) {
		got += n.reason + " " + string(n.about.UID) + " " + n.text + "; "
	}
	const want = "RegisteredNode b Node b event: Registered Node b in Controller; RegisteredNode a Node a event: Registered Node a in Controller; RemovingNode a Node a event: Removing Node a from Controller; "
	if got != want {
		t.Errorf("told is %q, want %q", got, want)
	}
}

// evictions are the taints that a node has after a plan.
func evictions(do plan, n *corev1.Node) (out []string) {
	taints := n.Spec.Taints
	for _, c := range do.changes {
		if c.node == n && c.retaint {
			taints = c.taints
		}
	}
	for _, t := range taints {
		out = append(out, t.Key)
	}
	return out
}

func TestTaintsFollowReadiness(t *testing.T) {
	const notReady, unreachable = corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable
	for name, c := range map[string]struct {
		node  *corev1.Node
		waits bool // for another in the zone
		want  []string
	}{
		"ready":                     {node("a", corev1.ConditionTrue), false, nil},
		"ready again":               {node("a", corev1.ConditionTrue, unreachable, "mine", notReady), true, []string{"mine"}},
		"not ready":                 {node("a", corev1.ConditionFalse, "mine"), false, []string{"mine", notReady}},
		"unknown":                   {node("a", corev1.ConditionUnknown), false, []string{unreachable}},
		"unknown, not its turn":     {node("a", corev1.ConditionUnknown), true, nil},
		"unknown after not ready":   {node("a", corev1.ConditionUnknown, notReady), true, []string{unreachable}},
		"not ready after unknown":   {node("a", corev1.ConditionFalse, unreachable), true, []string{notReady}},
		"not ready, and tainted so": {node("a", corev1.ConditionFalse, notReady), true, []string{notReady}},
		"not known at all":          {node("a", "", notReady), false, []string{notReady}},
	} {
		t.Run(name, func(t *testing.T) {
			m := memory{}
			if c.waits {
				m.tainted = map[string]time.Time{"/": after(-5)}
			}
			do := look(m, noon, nil, c.node, node("well", corev1.ConditionTrue))
			if got := evictions(do, c.node); !slices.Equal(got, c.want) {
				t.Errorf("taints are %v, want %v", got, c.want)
			}
		})
	}
}

func TestPaceOfEvictions(t *testing.T) {
	for name, c := range map[string]struct {
		zone census
		want time.Duration
	}{
		"one of two":                   {census{1, 1}, 10 * time.Second},
		"two of two":                   {census{0, 2}, 10 * time.Second},
		"two of three":                 {census{1, 2}, 10 * time.Second},
		"much of a small zone":         {census{2, 3}, 0},
		"just not much":                {census{10, 12}, 10 * time.Second},
		"much of fifty":                {census{20, 30}, 0},
		"much of a large zone":         {census{20, 31}, 100 * time.Second},
		"all of a large zone, cut off": {census{0, 60}, 10 * time.Second},
	} {
		if got := c.zone.pace(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// If no node is ready, nobody is evicted, and those that were to be are not any more.
func TestNobodyIsEvictedIfNoNodeIsReady(t *testing.T) {
	a, b := node("a", corev1.ConditionUnknown, corev1.TaintNodeUnreachable), inZone(node("b", corev1.ConditionFalse), "z")
	do := look(memory{}, noon, nil, a, b)
	if got := append(evictions(do, a), evictions(do, b)...); len(got) > 0 || !do.memory.down {
		t.Errorf("taints are %v", got)
	}
	// A node that does not count changes nothing.
	exempted := node("c", corev1.ConditionTrue)
	exempted.Labels = map[string]string{exempt: ""}
	if do := look(do.memory, after(5), nil, a, b, exempted); !do.memory.down {
		t.Error("a node that does not count does")
	}
	// When one is heard of, the others have their time: c was last heard of at noon.
	c := node("c", corev1.ConditionTrue)
	m := look(memory{}, noon, nil, c).memory
	m.down = true
	b.Status.Conditions[0].Status = corev1.ConditionTrue
	do = look(m, after(39), nil, a, b, c)
	if do.memory.down || len(evictions(do, a)) != 1 {
		t.Errorf("with one ready, down is %v, taints are %v", do.memory.down, evictions(do, a))
	}
	if do = look(do.memory, after(75), nil, b, c); len(do.changes) != 0 {
		t.Errorf("it changes %+v", do.changes)
	}
}

// world is a cluster in which nodes fall silent and come back.
type world struct {
	r      *rand.Rand
	now    time.Time
	nodes  []*corev1.Node
	leases map[string]*coordinationv1.Lease
	silent map[string]time.Time // since when
	memory memory
}

func newWorld(r *rand.Rand) *world {
	w := &world{r: r, now: noon, leases: map[string]*coordinationv1.Lease{}, silent: map[string]time.Time{}}
	for i := range 1 + r.IntN(8) {
		w.nodes = append(w.nodes, inZone(node(fmt.Sprint("n", i), corev1.ConditionTrue), fmt.Sprint("z", r.IntN(2))))
	}
	return w
}

// step is five seconds in which nodes do what they do, and a look at them.
func (w *world) step() plan {
	w.now = w.now.Add(period)
	for _, n := range w.nodes {
		_, silent := w.silent[n.Name]
		switch {
		case !silent && w.r.IntN(40) == 0:
			w.silent[n.Name] = w.now
		case silent && w.r.IntN(40) == 0:
			delete(w.silent, n.Name)
		}
		if _, silent := w.silent[n.Name]; !silent {
			w.leases[n.Name] = lease(w.now)
			w.beat(n)
		}
	}
	do := look(w.memory, w.now, w.leases, w.nodes...)
	w.memory = do.memory
	return do
}

// beat has a node that lives say that it is ready, if another said otherwise.
func (w *world) beat(n *corev1.Node) {
	c := conditionOf(n, corev1.NodeReady)
	if c.Status != corev1.ConditionTrue {
		c.Status, c.LastHeartbeatTime, c.LastTransitionTime = corev1.ConditionTrue, metav1.NewTime(w.now), metav1.NewTime(w.now)
	}
}

func (w *world) apply(do plan) {
	for _, c := range do.changes {
		i := slices.IndexFunc(w.nodes, func(n *corev1.Node) bool { return n.Name == c.node.Name })
		now := c.node.DeepCopy()
		if c.status != nil {
			now.Status = *c.status
		}
		if c.retaint {
			now.Spec.Taints = c.taints
		}
		w.nodes[i] = now
	}
}

func TestNodesLiveAndDie(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		w := newWorld(r)
		turns := map[string]time.Time{}
		for range 200 {
			was := w.nodes
			w.nodes = nil
			for _, n := range was {
				w.nodes = append(w.nodes, n.DeepCopy())
			}
			do := w.step()
			w.apply(do)
			if again := look(w.memory, w.now, w.leases, w.nodes...); len(again.changes) > 0 {
				t.Fatalf("a second look at the same time changes %+v", again.changes)
			}
			w.check(t, was, turns)
		}
	}
}

// check says what is wrong after a look.
func (w *world) check(t *testing.T, was []*corev1.Node, turns map[string]time.Time) {
	t.Helper()
	ready := 0
	for _, n := range w.nodes {
		if readiness(n) == corev1.ConditionTrue {
			ready++
		}
	}
	for i, n := range w.nodes {
		since, silent := w.silent[n.Name]
		unknown := readiness(n) == corev1.ConditionUnknown
		// The last sign of life is the look before it fell silent.
		if quiet := w.now.Sub(since); unknown && (!silent || quiet <= grace-period) || silent && !unknown && quiet > grace+period && !w.relieved(since) {
			t.Fatalf("%s: unknown is %v, silent %v for %v", n.Name, unknown, silent, quiet)
		}
		tainted := len(n.Spec.Taints) > 0
		if tainted && (!unknown || ready == 0) {
			t.Fatalf("%s is evicted: it is %s, %d are ready", n.Name, readiness(n), ready)
		}
		if tainted && len(was[i].Spec.Taints) == 0 {
			zone := zoneOf(n)
			if d := w.now.Sub(turns[zone]); d < eviction {
				t.Fatalf("%s is evicted %v after another of its zone", n.Name, d)
			}
			turns[zone] = w.now
		}
	}
}

// relieved reports whether nodes were given more time since then, for none was ready.
func (w *world) relieved(since time.Time) bool {
	for _, r := range w.memory.nodes {
		if r.heard.After(since) && r.heard.Before(w.now) {
			return true
		}
	}
	return false
}
