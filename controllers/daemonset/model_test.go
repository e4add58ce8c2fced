package daemonset

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/even-keel/evenkeel/controllers/pods"
)

// world is a model of a cluster with one set, in which plans are carried out at once,
// and what kubelets, nodes and users do comes at random.
type world struct {
	t        *testing.T
	rand     *rand.Rand
	set      *appsv1.DaemonSet
	nodes    map[string]*corev1.Node
	pods     map[string]*corev1.Pod
	failed   map[string]failure
	template int // its version
	made     int
	now      time.Time
	log      []string
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 11)), nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{},
		failed: map[string]failure{}, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.set = &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: "set"}}
	sp := &w.set.Spec
	sp.Template.Labels = map[string]string{"app": "agent"}
	sp.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	sp.MinReadySeconds = pick[int32](w.rand, 0, 0, 10)
	u := &sp.UpdateStrategy
	u.Type = pick(w.rand, appsv1.RollingUpdateDaemonSetStrategyType, appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType)
	if u.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		none, some := intstr.FromInt32(0), pick(w.rand, intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("50%"))
		u.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &some, MaxSurge: &none}
		if w.rand.IntN(2) == 0 {
			u.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &none, MaxSurge: &some}
		}
	}
	for range 4 {
		w.node()
	}
	return w
}

// node has a node come, change or go.
func (w *world) node() {
	name := fmt.Sprint("n", w.rand.IntN(6))
	if w.nodes[name] != nil && w.rand.IntN(4) == 0 {
		delete(w.nodes, name)
		maps.DeleteFunc(w.pods, func(_ string, p *corev1.Pod) bool { return p.Spec.NodeName == name })
		w.note("%s goes", name)
		return
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": pick(w.rand, "ssd", "ssd", "ssd", "hdd")}}}
	if w.rand.IntN(4) == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: "example.com/t", Effect: pick(w.rand, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)}}
	}
	w.nodes[name] = n
	w.note("%s is %v", name, fitterOf(w.set).of(n))
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%+v\n%s", fmt.Sprintf(format, args...), w.set.Spec.UpdateStrategy.RollingUpdate, strings.Join(w.log, "\n"))
}

func (w *world) observe() seen {
	return seen{set: w.set, nodes: slices.Collect(maps.Values(w.nodes)), pods: slices.Collect(maps.Values(w.pods)),
		hash: fmt.Sprint("h", w.template), failed: w.failed, now: w.now}
}

// reconcile does what the reconciler does, up to a fixed point.
func (w *world) reconcile() {
	for range 1000 {
		s := w.observe()
		do := decide(s)
		if do.nothing() {
			w.sane(s.status())
			return
		}
		w.check(s, do)
	}
	w.fail("decide leads to no fixed point")
}

func (w *world) sane(st appsv1.DaemonSetStatus) {
	if st.NumberReady > st.CurrentNumberScheduled || st.CurrentNumberScheduled > st.DesiredNumberScheduled ||
		st.NumberAvailable > st.NumberReady || st.UpdatedNumberScheduled > st.CurrentNumberScheduled {
		w.fail("counts do not fit: %+v", st)
	}
}

// check carries a plan out, and holds it to what the kind promises.
func (w *world) check(s seen, do plan) {
	before, down := w.upNodes(s)
	most := s.maxUnavailable(first(s.places()))
	w.apply(s, do)
	after, downAfter := w.upNodes(w.observe())
	switch {
	case s.surges():
		for node := range before {
			if !after[node] {
				w.fail("%s was up, and is not after %+v", node, do)
			}
		}
	case s.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		most = 0
		fallthrough
	default:
		if downAfter > max(down, most) {
			w.fail("%d nodes are down after %d were, and %d may", downAfter, down, most)
		}
	}
	w.checkNodes(w.observe(), before, do.create)
}

func first[A, B any](a A, _ B) A { return a }

// upNodes are the nodes that should have a pod and have one that is up; down is how
// many have none.
func (w *world) upNodes(s seen) (up map[string]bool, down int) {
	up = map[string]bool{}
	places, _ := s.places()
	for _, at := range places {
		switch {
		case at.fit != runs:
		case s.up(at):
			up[at.node] = true
		default:
			down++
		}
	}
	return up, down
}

// checkNodes counts pods that run, or are to, after a plan.
func (w *world) checkNodes(s seen, up map[string]bool, created []string) {
	places, _ := s.places()
	doubled, begun := 0, 0
	for _, at := range places {
		if len(at.live) > 1 && !s.surges() || len(at.live) > 2 {
			w.fail("%s has %d pods", at.node, len(at.live))
		}
		if len(at.live) == 2 && up[at.node] {
			doubled++
			if slices.Contains(created, at.node) {
				begun++
			}
		}
	}
	if most := s.maxSurge(places); begun > 0 && doubled > most {
		w.fail("%d nodes have two pods, and %d may", doubled, most)
	}
}

func (w *world) apply(s seen, do plan) {
	removed := map[string]bool{}
	for _, p := range do.remove {
		if p.DeletionTimestamp != nil || removed[p.Name] {
			w.fail("%s is removed twice", p.Name)
		}
		removed[p.Name] = true
		w.note("remove %s from %s", p.Name, nodeOf(p))
		if p.Status.Phase == corev1.PodFailed {
			w.failed[nodeOf(p)] = w.failed[nodeOf(p)].next(w.now)
		}
		w.delete(p.Name)
	}
	for _, node := range do.create {
		if n := w.nodes[node]; n == nil || fitterOf(w.set).of(n) != runs {
			w.fail("a pod is made for %s", node)
		}
		for _, there := range s.pods {
			if nodeOf(there) == node && !s.surges() {
				w.fail("a pod is made for %s beside %s", node, there.Name)
			}
		}
		p := s.newPod(node)
		w.made++
		p.Name, p.Status.Phase, p.CreationTimestamp = fmt.Sprintf("p%03d", w.made), corev1.PodPending, metav1.NewTime(w.now)
		w.note("create %s of %s on %s", p.Name, s.hash, node)
		w.pods[p.Name] = p
	}
}

func (w *world) delete(name string) {
	p := w.pods[name].DeepCopy()
	p.DeletionTimestamp = &metav1.Time{Time: w.now}
	if w.pods[name] = p; p.Spec.NodeName == "" {
		delete(w.pods, name)
	}
}

// kubelet has something happen to a pod; well says that it is for the better.
func (w *world) kubelet(p *corev1.Pod, well bool) {
	p = p.DeepCopy()
	w.pods[p.Name] = p
	switch {
	case p.DeletionTimestamp != nil:
		delete(w.pods, p.Name)
	case p.Spec.NodeName == "":
		if w.nodes[nodeOf(p)] != nil {
			p.Spec.NodeName = nodeOf(p)
		}
	case p.Status.Phase == corev1.PodPending:
		p.Status.Phase = corev1.PodRunning
	case pods.Ended(p):
	case !pods.Ready(p):
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)}}
	case !well && w.rand.IntN(2) == 0:
		p.Status.Phase, p.Status.Conditions = pick(w.rand, corev1.PodFailed, corev1.PodSucceeded), nil
	case !well:
		p.Status.Conditions = nil
	default:
		return
	}
	w.note("kubelet: %s on %s is %s, ready %v", p.Name, p.Spec.NodeName, p.Status.Phase, pods.Ready(p))
}

// chance has something happen.
func (w *world) chance() {
	w.now = w.now.Add(time.Duration(w.rand.IntN(8)) * time.Second)
	names := slices.Sorted(maps.Keys(w.pods))
	switch n := w.rand.IntN(24); {
	case n == 0:
		w.template = w.rand.IntN(4)
		w.note("template %d", w.template)
	case n == 1:
		w.node()
	case n == 2 && len(names) > 0:
		w.note("somebody deletes a pod")
		w.delete(pick(w.rand, names...))
	case n < 17 && len(names) > 0:
		w.kubelet(w.pods[pick(w.rand, names...)], n < 14)
	default:
		w.reconcile()
	}
}

// heal lets all go well until nothing happens any more.
func (w *world) heal() {
	for range 500 {
		before := len(w.log)
		w.reconcile()
		w.now = w.now.Add(time.Hour)
		for _, name := range slices.Sorted(maps.Keys(w.pods)) {
			w.kubelet(w.pods[name], true)
		}
		if w.reconcile(); len(w.log) == before {
			return
		}
	}
	w.fail("it does not come to an end")
}

// goal holds the world to what the set says.
func (w *world) goal() {
	s := w.observe()
	places, astray := s.places()
	if len(astray) > 0 {
		w.fail("%s has no node", astray[0].Name)
	}
	var desired int32
	for _, at := range places {
		if at.fit == runs {
			desired++
		}
		if n := len(at.live) + len(at.ending) + len(at.spent); n > 1 || at.fit == never && n > 0 || at.fit == runs && !s.up(at) {
			w.fail("%s, which is %d, has %d pods", at.node, at.fit, n)
		}
		if at.fit == runs && w.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType && !s.updated(at.live[0]) {
			w.fail("%s is not updated", at.node)
		}
	}
	if st := s.status(); st.DesiredNumberScheduled != desired || st.NumberAvailable != desired || st.NumberUnavailable != 0 {
		w.fail("the status is not that of the goal: %+v", st)
	}
	if do := decide(s); !do.nothing() || do.again > 0 {
		w.fail("there is something to do at the goal")
	}
}

func TestWhateverHappensItEndsAtTheGoal(t *testing.T) {
	for seed := range uint64(2000) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 80 {
				w.chance()
			}
			w.heal()
			w.goal()
		})
	}
}
