package node

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// world is a node on which one pod lives, in the hands of decide alone. It holds
// decide to what must always be true.
type world struct {
	t       *testing.T
	rnd     *rand.Rand
	view    view
	states  map[string]*ContainerState
	refuses bool // nothing starts
	options Options
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), states: map[string]*ContainerState{}, options: Options{}.withDefaults()}
	w.view = view{
		now: time.Unix(1_000_000, 0), pod: w.pod(), runtime: "test", options: &w.options,
		memory: memory{backoff: map[string]backoff{}, trouble: map[string]trouble{}, health: map[probeName]verdict{}},
	}
	return w
}

// pod is one with any containers.
func (w *world) pod() *corev1.Pod {
	policies := []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", Generation: 1}}
	p.Spec.RestartPolicy = policies[w.rnd.IntN(3)]
	always := corev1.ContainerRestartPolicyAlways
	for i := range w.rnd.IntN(4) {
		c := corev1.Container{Name: fmt.Sprintf("i%d", i)}
		if w.rnd.IntN(2) == 0 {
			c.RestartPolicy = &always
			w.probes(&c)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	for i := range 1 + w.rnd.IntN(3) {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i)}
		w.probes(&c)
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	if w.rnd.IntN(4) == 0 {
		limit := int64(1 + w.rnd.IntN(600))
		p.Spec.ActiveDeadlineSeconds = &limit
	}
	return p
}

func (w *world) probes(c *corev1.Container) {
	for _, p := range []**corev1.Probe{&c.StartupProbe, &c.LivenessProbe, &c.ReadinessProbe} {
		if w.rnd.IntN(3) == 0 {
			*p = &corev1.Probe{}
		}
	}
}

// step decides, checks and acts until nothing is to be done, and returns the plan.
func (w *world) step() plan {
	for range 100 {
		w.observe()
		p := decide(w.view)
		w.check(p)
		if !p.prepare && len(p.starts) == 0 && len(p.stops) == 0 {
			w.view.pod.Status = p.status
			return p
		}
		w.act(p)
	}
	w.t.Fatal("there is always something to do")
	return plan{}
}

func (w *world) observe() {
	w.view.seen = Observed{IPs: []string{"10.0.0.1"}}
	for _, s := range w.states {
		w.view.seen.Containers = append(w.view.seen.Containers, *s)
	}
}

func (w *world) act(p plan) {
	if p.prepare {
		w.view.known, w.view.memory.prepared = true, new(map[string]string)
	}
	for _, s := range p.stops {
		w.states[s.slot.spec.Name].StopBy = w.view.now.Add(s.grace)
	}
	for _, s := range p.starts {
		name := s.slot.spec.Name
		if w.refuses {
			w.view.memory.trouble[name] = trouble{Failure: Failure{"Refused", "no"}, retry: w.view.now.Add(retryAfter)}
			continue
		}
		next := &ContainerState{Name: name, ID: "x", Attempt: s.attempt, Phase: Running, StartedAt: w.view.now}
		if was := w.states[name]; was != nil {
			next.Last = was.Exit
		}
		w.states[name] = next
		w.view.memory.backoff[name] = s.backoff
		maps.DeleteFunc(w.view.memory.health, func(n probeName, _ verdict) bool { return n.container == name })
	}
}

// check holds a plan to what must be true of any.
func (w *world) check(p plan) {
	w.t.Helper()
	pod, fail := w.view.pod, w.t.Errorf
	slots := slotsOf(pod, w.view.seen.Containers)
	d := decision{view: w.view, slots: slots}
	for _, s := range p.starts {
		name := s.slot.spec.Name
		is := w.states[name]
		switch {
		case !w.view.known:
			fail("%s starts before the pod is prepared", name)
		case pod.DeletionTimestamp != nil || terminal(pod):
			fail("%s starts though the pod ends", name)
		case is.runs():
			fail("%s starts though it runs", name)
		case is != nil && !s.slot.restarts(pod.Spec.RestartPolicy):
			fail("%s starts again, which its policy forbids", name)
		case is != nil && s.attempt != is.Attempt+1, is == nil && s.attempt != 0:
			fail("%s is attempt %d", name, s.attempt)
		case s.slot.role == mainRole && !d.initialized():
			fail("%s starts before the pod is initialized", name)
		}
		b := w.view.memory.backoff[name]
		if is != nil && b.delay > 0 && is.Exit.FinishedAt.Sub(b.since) <= 2*w.options.MaxBackoff && w.view.now.Sub(is.Exit.FinishedAt) < b.delay {
			fail("%s does not back off", name)
		}
	}
	if terminal(pod) && p.status.Phase != pod.Status.Phase {
		fail("the pod was %s and is %s", pod.Status.Phase, p.status.Phase)
	}
	w.checkEnd(p, slots)
}

func (w *world) checkEnd(p plan, slots []slot) {
	w.t.Helper()
	mainRuns, anyRuns, allDone := false, false, true
	for i := range slots {
		s := &slots[i]
		mainRuns = mainRuns || s.role == mainRole && s.state.runs()
		anyRuns = anyRuns || s.state.runs()
		allDone = allDone && (s.role != mainRole || s.succeeded())
	}
	if p.over && anyRuns {
		w.t.Error("it is over, but something runs")
	}
	if p.gone && w.view.pod.DeletionTimestamp == nil {
		w.t.Error("it goes, but nobody deleted it")
	}
	if p.status.Phase == corev1.PodSucceeded && !terminal(w.view.pod) && !allDone {
		w.t.Error("it succeeded, but not all its containers did")
	}
	if terminal(&corev1.Pod{Status: p.status}) && anyRuns && !terminal(w.view.pod) {
		w.t.Errorf("it is %s, but something runs", p.status.Phase)
	}
	for _, s := range p.stops {
		if s.slot.role == sidecar && mainRuns && s.why == "Stopping container "+s.slot.spec.Name {
			w.t.Error("a sidecar ends before what it is for")
		}
	}
}

func terminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// happen has something happen to the pod: containers end, probes answer, time goes by.
func (w *world) happen(p plan) {
	now := w.view.now
	for name, s := range w.states {
		stops := !s.StopBy.IsZero() && !now.Before(s.StopBy)
		if s.runs() && (stops || w.rnd.IntN(4) == 0) {
			code := int32(w.rnd.IntN(2))
			s.Phase, s.Exit = Exited, &Exit{ID: "x", Code: code, StartedAt: s.StartedAt, FinishedAt: now}
			delete(w.view.memory.trouble, name)
		}
	}
	for _, a := range p.probes {
		w.view.memory.health[a.name] = verdict(w.rnd.IntN(3))
	}
	w.refuses = w.rnd.IntN(5) == 0
	if w.rnd.IntN(2) == 0 && p.next.After(now) {
		w.view.now = p.next
		return
	}
	w.view.now = now.Add(time.Duration(w.rnd.IntN(60_000)) * time.Millisecond)
}

// forget has the agent start anew: what it remembers is lost, and maybe what ran.
func (w *world) forget() {
	w.view.memory = memory{backoff: map[string]backoff{}, trouble: map[string]trouble{}, health: map[probeName]verdict{}}
	w.view.known = false
	if w.rnd.IntN(2) == 0 {
		w.states = map[string]*ContainerState{}
		for i := range w.view.pod.Status.ContainerStatuses {
			w.restore(&w.view.pod.Status.ContainerStatuses[i])
		}
		for i := range w.view.pod.Status.InitContainerStatuses {
			w.restore(&w.view.pod.Status.InitContainerStatuses[i])
		}
	}
}

// restore is what the checks are to know of a container that was lost.
func (w *world) restore(was *corev1.ContainerStatus) {
	if s := lost(was); s != nil {
		if s.Exit.FinishedAt.IsZero() {
			s.Exit.FinishedAt = w.view.now
		}
		w.states[s.Name] = s
	}
}

func seeds(t *testing.T, n uint64) []uint64 {
	if s, err := strconv.ParseUint(os.Getenv("EVENKEEL_TEST_SEED"), 10, 64); err == nil {
		return []uint64{s}
	}
	base := rand.Uint64N(1 << 32)
	var out []uint64
	for i := range n {
		out = append(out, base+i)
	}
	t.Logf("seeds are %d to %d; EVENKEEL_TEST_SEED runs one", base, base+n-1)
	return out
}

func TestDecideKeepsItsPromises(t *testing.T) {
	for _, seed := range seeds(t, 200) {
		w := newWorld(t, seed)
		for range 40 {
			w.happen(w.step())
			if w.rnd.IntN(20) == 0 {
				w.forget()
			}
		}
		at, grace := metav1.NewTime(w.view.now.Add(30*time.Second)), int64(30)
		w.view.pod.DeletionTimestamp, w.view.pod.DeletionGracePeriodSeconds = &at, &grace
		gone := false
		for range 20 {
			p := w.step()
			if gone = p.gone; gone {
				break
			}
			w.view.now = w.view.now.Add(31 * time.Second)
			w.happen(p)
		}
		if !gone || !terminal(w.view.pod) {
			t.Errorf("it does not go: %s", w.view.pod.Status.Phase)
		}
		if t.Failed() {
			t.Fatalf("seed %d: policy %s, status %+v", seed, w.view.pod.Spec.RestartPolicy, w.view.pod.Status)
		}
	}
}

func TestBackoffDoublesAndIsForgotten(t *testing.T) {
	o := Options{}.withDefaults()
	var b backoff
	ended := time.Unix(0, 0)
	var got []time.Duration
	for range 8 {
		var at time.Time
		at, b = b.again(ended, &o)
		got = append(got, at.Sub(ended))
		ended = at.Add(time.Second)
	}
	if want := "[0s 10s 20s 40s 1m20s 2m40s 5m0s 5m0s]"; fmt.Sprint(got) != want {
		t.Errorf("the delays are %v, want %s", got, want)
	}
	if at, _ := b.again(ended.Add(time.Hour), &o); !at.Equal(ended.Add(time.Hour)) {
		t.Error("it backs off after an hour of running")
	}
}

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "1", "B": "$(A)"}
	for in, want := range map[string]string{
		"plain": "plain", "$(A)": "1", "x$(A)y$(B)z": "x1y$(A)z", "$$(A)": "$(A)", "$(C)": "$(C)", "$(A": "$(A", "$": "$", "$A": "$A", "$$$(A)": "$1",
	} {
		if got := expand(in, values); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// running is a view of a pod whose only container runs and has a readiness probe.
func running() view {
	w := view{
		now: time.Unix(1_000_000, 0), known: true, options: &Options{MaxBackoff: time.Minute},
		memory: memory{prepared: new(map[string]string), health: map[probeName]verdict{{"app", Readiness}: healthy}},
		pod:    &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", ReadinessProbe: &corev1.Probe{}}}}},
	}
	w.seen.Containers = []ContainerState{{Name: "app", ID: "x", Phase: Running, StartedAt: w.now.Add(-time.Minute)}}
	return w
}

func TestAPodThatRunsOutlivesTroubleWithItsVolumes(t *testing.T) {
	v := running()
	v.memory.refresh = v.now.Add(-time.Second)
	v.memory.trouble = map[string]trouble{"": {retry: v.now.Add(time.Second)}}
	p := decide(v)
	if p.prepare || len(p.probes) != 1 || !p.status.ContainerStatuses[0].Ready || !p.next.Equal(v.now.Add(time.Second)) {
		t.Errorf("the plan is %+v", p)
	}
	v.now = v.now.Add(time.Second)
	if p := decide(v); !p.prepare || len(p.probes) != 1 {
		t.Errorf("then it is %+v", p)
	}
}

func TestAPodThatEndsIsAskedWhetherItIsReady(t *testing.T) {
	v := running()
	at := metav1.NewTime(v.now.Add(30 * time.Second))
	v.pod.DeletionTimestamp = &at
	p := decide(v)
	if len(p.probes) != 1 || !p.status.ContainerStatuses[0].Ready || len(p.stops) != 1 || p.stops[0].grace != 30*time.Second {
		t.Errorf("the plan is %+v", p)
	}
	v.seen.Containers[0].StopBy = at.Time
	if p := decide(v); len(p.stops) != 0 || len(p.probes) != 1 {
		t.Errorf("then it is %+v", p)
	}
}
