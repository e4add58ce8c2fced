package deployment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// model is a Deployment, its ReplicaSets, and their pods, of which is known whether
// they are ready.
type model struct {
	seen
	pods        map[types.UID][]bool
	terminating map[types.UID]int32
	made        int
}

// newModel is a Deployment that has nothing yet.
func newModel(n int32, strategy appsv1.DeploymentStrategy) *model {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "d", Generation: 1}}
	d.Spec = appsv1.DeploymentSpec{
		Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, Strategy: strategy,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
	}
	m := &model{seen: seen{deployment: d, now: noon}, pods: map[types.UID][]bool{}, terminating: map[types.UID]int32{}}
	m.image("web:1")
	return m
}

func rolling(surge, unavailable intstr.IntOrString) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
	}
}

func (m *model) image(name string) {
	m.deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: name}}
	m.deployment.Generation++
}

// decide does what is decided, and fails if there is more to decide then.
func (m *model) decide(t *testing.T) plan {
	t.Helper()
	p := decide(m.seen)
	m.apply(p)
	if again := decide(m.seen); !again.nothing() {
		t.Fatalf("after %s comes %s", p, again)
	}
	m.deployment.Status = m.status(outcome{})
	return p
}

func (m *model) apply(p plan) {
	if p.create != nil {
		set := p.create.DeepCopy()
		m.made++
		set.UID, set.Generation = types.UID(fmt.Sprint(m.made)), 1
		set.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(m.made) * time.Minute))
		m.sets = append(m.sets, set)
	}
	for _, c := range p.update {
		i := m.index(c.set)
		c.set.Generation++
		m.sets[i] = c.set
	}
	for _, set := range p.remove {
		m.sets = slices.Delete(m.sets, m.index(set), m.index(set)+1)
	}
}

func (m *model) index(set *appsv1.ReplicaSet) int {
	return slices.IndexFunc(m.sets, func(s *appsv1.ReplicaSet) bool { return s.UID == set.UID })
}

// reconcile does what the controller of ReplicaSets does.
func (m *model) reconcile(i int) {
	set := m.sets[i].DeepCopy()
	pods, n := m.pods[set.UID], int(*set.Spec.Replicas)
	slices.SortFunc(pods, func(a, b bool) int { return count(b) - count(a) }) // those that are not ready go first
	if extra := len(pods) - n; extra > 0 {
		m.terminating[set.UID] += int32(extra)
		pods = pods[:n]
	}
	for len(pods) < n {
		pods = append(pods, false)
	}
	m.pods[set.UID] = pods
	ready, ending := int32(count(pods...)), m.terminating[set.UID]
	set.Status = appsv1.ReplicaSetStatus{
		ObservedGeneration: set.Generation, Replicas: int32(n), ReadyReplicas: ready, AvailableReplicas: ready, TerminatingReplicas: &ending,
	}
	m.sets[i] = set
}

func count(of ...bool) (n int) {
	for _, b := range of {
		if b {
			n++
		}
	}
	return n
}

// start makes a pod ready, any of those that are not; it reports whether there was one.
func (m *model) start(r *rand.Rand) bool {
	var waiting []*bool
	for _, set := range m.sets {
		for i := range m.pods[set.UID] {
			if !m.pods[set.UID][i] {
				waiting = append(waiting, &m.pods[set.UID][i])
			}
		}
	}
	if len(waiting) == 0 {
		return false
	}
	*waiting[r.IntN(len(waiting))] = true
	return true
}

// totals are how many pods there are, and how many of them are ready.
func (m *model) totals() (all, ready int32) {
	for _, pods := range m.pods {
		all += int32(len(pods))
		ready += int32(count(pods...))
	}
	return all, ready
}

// step lets one of all who have something to do do it.
func (m *model) step(t *testing.T, r *rand.Rand) {
	t.Helper()
	switch r.IntN(4) {
	case 0:
		m.decide(t)
	case 1:
		m.start(r)
	case 2:
		for uid := range m.terminating {
			m.terminating[uid] = max(0, m.terminating[uid]-1)
		}
	case 3:
		if len(m.sets) > 0 {
			m.reconcile(r.IntN(len(m.sets)))
		}
	}
}

// settle goes on until nothing is left to do, checking each step, and fails if there
// is no end.
func (m *model) settle(t *testing.T, r *rand.Rand, check func()) {
	t.Helper()
	for range 3000 {
		m.step(t, r)
		check()
		if m.done() {
			return
		}
	}
	all, ready := m.totals()
	t.Fatalf("no end: %d pods, %d ready, plan %s, status %+v", all, ready, decide(m.seen), m.deployment.Status)
}

func (m *model) done() bool {
	all, ready := m.totals()
	n := *m.deployment.Spec.Replicas
	c := conditionOf(m.deployment.Status.Conditions, appsv1.DeploymentProgressing)
	return all == n && ready == n && decide(m.seen).nothing() && m.complete(m.counts()) && (c == nil || c.Reason == newSetAvailable)
}

func (p plan) String() string {
	out := ""
	if p.create != nil {
		out += fmt.Sprintf("create %s with %d; ", p.create.Name, *p.create.Spec.Replicas)
	}
	for _, c := range p.update {
		out += fmt.Sprintf("update %s from %d to %d; ", c.set.Name, c.was, *c.set.Spec.Replicas)
	}
	for _, set := range p.remove {
		out += "remove " + set.Name + "; "
	}
	return out
}
