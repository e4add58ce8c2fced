package statefulset

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// world is a model of a cluster with one set, in which plans are carried out at once,
// and what kubelets and users do comes at random.
type world struct {
	t        *testing.T
	rand     *rand.Rand
	set      *appsv1.StatefulSet
	pods     map[string]*corev1.Pod
	claims   map[string]*corev1.PersistentVolumeClaim
	template int // its version
	now      time.Time
	uids     int
	log      []string
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 7)), pods: map[string]*corev1.Pod{},
		claims: map[string]*corev1.PersistentVolumeClaim{}, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.set = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "set"}}
	sp := &w.set.Spec
	sp.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	sp.Template.Labels = map[string]string{"app": "web"}
	sp.PodManagementPolicy = pick(w.rand, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)
	sp.MinReadySeconds = pick[int32](w.rand, 0, 0, 10)
	sp.UpdateStrategy.Type = pick(w.rand, appsv1.RollingUpdateStatefulSetStrategyType, appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType)
	if w.rand.IntN(2) == 0 {
		sp.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		sp.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: pick(w.rand, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType),
			WhenScaled:  pick(w.rand, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType),
		}
	}
	w.user()
	return w
}

// user changes the set at random.
func (w *world) user() {
	sp, r := &w.set.Spec, w.rand
	n := int32(r.IntN(6))
	sp.Replicas = &n
	if r.IntN(4) == 0 {
		sp.Ordinals = &appsv1.StatefulSetOrdinals{Start: int32(r.IntN(3))}
	}
	w.template = r.IntN(4)
	if sp.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		partition := pick[int32](r, 0, 0, 1, 3)
		sp.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}
		if r.IntN(2) == 0 {
			most := pick(r, intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("50%"))
			sp.UpdateStrategy.RollingUpdate.MaxUnavailable = &most
		}
	}
	w.note("user: %d from %d, template %d, %+v", n, seen{set: w.set}.start(), w.template, sp.UpdateStrategy.RollingUpdate)
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.log, "\n"))
}

func (w *world) observe() seen {
	s := seen{set: w.set, claims: w.claims, update: fmt.Sprintf("web-%d", w.template), currentTemplate: &w.set.Spec.Template, now: w.now}
	s.pods = slices.Collect(maps.Values(w.pods))
	if s.current = w.set.Status.CurrentRevision; s.current == "" {
		s.current = s.update
	}
	return s
}

// reconcile does what the reconciler does, up to a fixed point.
func (w *world) reconcile() {
	for range 1000 {
		s := w.observe()
		do := decide(s)
		if do.nothing() {
			w.set = w.set.DeepCopy()
			w.set.Status = s.status()
			w.sane()
			return
		}
		w.check(s, do)
		w.apply(do)
	}
	w.fail("decide leads to no fixed point")
}

// sane holds the status to what the server demands of it.
func (w *world) sane() {
	st := w.set.Status
	if st.ReadyReplicas > st.Replicas || st.AvailableReplicas > st.ReadyReplicas || max(st.CurrentReplicas, st.UpdatedReplicas) > st.Replicas {
		w.fail("counts do not fit: %+v", st)
	}
}

func (w *world) apply(do plan) {
	for _, m := range append(do.supply, do.create...) {
		for _, c := range m.claims {
			if w.claims[c.Name] != nil {
				w.fail("claim %s is made twice", c.Name)
			}
			w.claims[c.Name] = c
		}
	}
	for _, c := range do.own {
		w.claims[c.Name] = c
	}
	for _, p := range do.label {
		p = p.DeepCopy()
		maps.Copy(p.Labels, identity(p.Name, ordinalOf(w.set, p)))
		w.pods[p.Name] = p
	}
	for _, m := range do.create {
		if w.pods[m.pod.Name] != nil {
			w.fail("%s is made twice", m.pod.Name)
		}
		for i := range w.set.Spec.VolumeClaimTemplates {
			if w.lost(w.claims[claimName(w.set, i, ordinalOf(w.set, m.pod))]) {
				w.fail("%s is made with a claim that goes", m.pod.Name)
			}
		}
		w.note("create %s of %s", m.pod.Name, revisionOf(m.pod))
		w.uids++
		m.pod.UID, m.pod.Status.Phase = types.UID(fmt.Sprint(w.uids)), corev1.PodPending
		w.pods[m.pod.Name] = m.pod
	}
	for _, p := range do.remove {
		w.note("remove %s", p.Name)
		w.delete(p.Name)
	}
}

func (w *world) delete(name string) {
	p := w.pods[name].DeepCopy()
	p.DeletionTimestamp = &metav1.Time{Time: w.now}
	w.pods[name] = p
}

// check holds a plan to what the kind promises.
func (w *world) check(s seen, do plan) {
	replicas, condemned := s.split()
	downBefore, downAfter := 0, 0
	removed := map[string]bool{}
	for _, p := range do.remove {
		if p.DeletionTimestamp != nil || removed[p.Name] {
			w.fail("%s is removed twice", p.Name)
		}
		removed[p.Name] = true
	}
	for i, p := range replicas {
		if !s.up(p) {
			downBefore++
			downAfter++
		} else if removed[p.Name] {
			downAfter++
			if i < s.partition() || s.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType || revisionOf(p) == s.update {
				w.fail("%s is up, and removed", p.Name)
			}
		}
	}
	if downAfter > max(downBefore, s.maxUnavailable()) {
		w.fail("%d are down after %d were, and %d may", downAfter, downBefore, s.maxUnavailable())
	}
	for _, m := range do.create {
		want := s.update
		if ordinalOf(s.set, m.pod)-s.start() < s.partition() {
			want = s.current
		}
		if revisionOf(m.pod) != want {
			w.fail("%s is made of %s, not %s", m.pod.Name, revisionOf(m.pod), want)
		}
	}
	if s.ordered() {
		w.checkOrder(s, do, replicas, condemned, removed)
	}
}

func (w *world) checkOrder(s seen, do plan, replicas, condemned []*corev1.Pod, removed map[string]bool) {
	if len(do.create) > 1 || len(do.create) > 0 && len(do.remove) > 0 {
		w.fail("more than one step: %d made, %d removed", len(do.create), len(do.remove))
	}
	upTo := 0 // how many replicas are up, from the first
	for upTo < len(replicas) && s.up(replicas[upTo]) {
		upTo++
	}
	for _, m := range do.create {
		if i := ordinalOf(s.set, m.pod) - s.start(); i != upTo {
			w.fail("%s is made when %d are up", m.pod.Name, upTo)
		}
	}
	for _, p := range condemned {
		last := !slices.ContainsFunc(condemned, func(q *corev1.Pod) bool { return ordinalOf(s.set, q) > ordinalOf(s.set, p) })
		if removed[p.Name] && (!last || len(removed) > 1 || upTo < len(replicas)) {
			w.fail("%s goes before others, or when %d of %d are up", p.Name, upTo, len(replicas))
		}
	}
	for i, p := range replicas {
		if p == nil || !removed[p.Name] {
			continue
		}
		if upTo < i {
			w.fail("%s goes when %d are up", p.Name, upTo)
		}
		for _, later := range replicas[i+1:] {
			if s.up(p) && revisionOf(later) != s.update && !removed[later.Name] {
				w.fail("%s is updated before %s", p.Name, later.Name)
			}
		}
	}
}

// kubelet has something happen to a pod; well says that it is for the better.
func (w *world) kubelet(p *corev1.Pod, well bool) {
	p = p.DeepCopy()
	w.pods[p.Name] = p
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)}
	switch {
	case p.DeletionTimestamp != nil:
		delete(w.pods, p.Name)
	case p.Status.Phase == corev1.PodPending:
		p.Status.Phase = corev1.PodRunning
	case p.Status.Phase != corev1.PodRunning:
	case !running(p):
		p.Status.Conditions = []corev1.PodCondition{ready}
	case !well && w.rand.IntN(2) == 0:
		p.Status.Phase = pick(w.rand, corev1.PodFailed, corev1.PodSucceeded)
	case !well:
		p.Status.Conditions = nil
	}
	w.note("kubelet: %s is %s, ready %v", p.Name, p.Status.Phase, running(p))
}

// collect deletes the claims of pods that are gone, as the garbage collector does.
func (w *world) collect() {
	maps.DeleteFunc(w.claims, func(name string, c *corev1.PersistentVolumeClaim) bool {
		if w.lost(c) {
			w.note("claim %s goes", name)
			return true
		}
		return false
	})
}

// lost reports whether a claim is owned by a pod that is gone.
func (w *world) lost(c *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == "Pod" && (w.pods[r.Name] == nil || w.pods[r.Name].UID != r.UID)
	})
}

// chance has something happen.
func (w *world) chance() {
	w.now = w.now.Add(time.Duration(w.rand.IntN(8)) * time.Second)
	names := slices.Sorted(maps.Keys(w.pods))
	switch n := w.rand.IntN(20); {
	case n == 0:
		w.user()
	case n == 1 && len(names) > 0:
		w.note("somebody deletes a pod")
		w.delete(pick(w.rand, names...))
	case n < 14 && len(names) > 0:
		w.kubelet(w.pods[pick(w.rand, names...)], n < 11)
	case n < 16:
		w.collect()
	default:
		w.reconcile()
	}
}

// heal lets all go well until nothing happens any more.
func (w *world) heal() {
	for range 500 {
		w.reconcile()
		w.now = w.now.Add(time.Minute)
		before := len(w.log)
		w.collect()
		for _, name := range slices.Sorted(maps.Keys(w.pods)) {
			if p := w.pods[name]; p.DeletionTimestamp != nil || !running(p) && !strings.HasPrefix(string(p.Status.Phase), "F") && p.Status.Phase != corev1.PodSucceeded {
				w.kubelet(p, true)
			}
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
	replicas, condemned := s.split()
	if len(condemned) > 0 {
		w.fail("%s is left", condemned[0].Name)
	}
	for i, p := range replicas {
		if !s.up(p) {
			w.fail("number %d is not up", i)
		}
		if w.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && i >= s.partition() && revisionOf(p) != s.update {
			w.fail("%s is of %s, not %s", p.Name, revisionOf(p), s.update)
		}
		for j := range w.set.Spec.VolumeClaimTemplates {
			if w.claims[claimName(w.set, j, ordinalOf(w.set, p))] == nil {
				w.fail("%s has no claim", p.Name)
			}
		}
	}
	if !decide(s).nothing() {
		w.fail("there is something to do at the goal")
	}
	st := s.status()
	if n := int32(s.wanted()); st.Replicas != n || st.ReadyReplicas != n || st.AvailableReplicas != n {
		w.fail("the status is not that of the goal: %+v", st)
	}
	if s.partition() == 0 && w.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && st.CurrentRevision != st.UpdateRevision {
		w.fail("the update is not complete: %+v", st)
	}
}

func TestWhateverHappensItEndsAtTheGoal(t *testing.T) {
	for seed := range uint64(2000) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			for range 60 {
				w.chance()
			}
			w.heal()
			w.goal()
		})
	}
}
