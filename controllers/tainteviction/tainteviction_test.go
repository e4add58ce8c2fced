package tainteviction

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// forever is the seconds of a toleration that has none.
const forever = -1

// toleration is one of a key, for some seconds.
func toleration(key string, seconds int64) corev1.Toleration {
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	if seconds != forever {
		t.TolerationSeconds = &seconds
	}
	return t
}

func taint(key string) corev1.Taint {
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute}
}

func TestWhatBecomesOfAPod(t *testing.T) {
	tolerations := func(all ...corev1.Toleration) []corev1.Toleration { return all }
	taints := func(keys ...string) (out []corev1.Taint) {
		for _, k := range keys {
			out = append(out, taint(k))
		}
		return out
	}
	for name, c := range map[string]struct {
		tolerations []corev1.Toleration
		taints      []corev1.Taint
		want        string
	}{
		"no taint":                    {nil, nil, "stay 0s"},
		"a taint that is not borne":   {nil, taints("a"), "evict 0s"},
		"one that is borne for ever":  {tolerations(toleration("a", forever)), taints("a"), "stay 0s"},
		"one that is borne a while":   {tolerations(toleration("a", 60)), taints("a"), "leave 50s"},
		"one that was borne a while":  {tolerations(toleration("a", 10)), taints("a"), "evict 0s"},
		"one that is not borne":       {tolerations(toleration("a", 0)), taints("a"), "evict 0s"},
		"a time that is none":         {tolerations(toleration("a", -5)), taints("a"), "evict 0s"},
		"two, and one is borne":       {tolerations(toleration("a", 60)), taints("a", "b"), "evict 0s"},
		"the shorter of two":          {tolerations(toleration("a", 60), toleration("b", 30)), taints("a", "b"), "leave 20s"},
		"one for ever, one for long":  {tolerations(toleration("a", forever), toleration("b", 30)), taints("a", "b"), "leave 20s"},
		"the first that fits":         {tolerations(toleration("a", forever), toleration("a", 30)), taints("a"), "stay 0s"},
		"tolerations without a taint": {tolerations(toleration("a", 0)), nil, "stay 0s"},
		"anything":                    {tolerations(corev1.Toleration{Operator: corev1.TolerationOpExists}), taints("a", "b"), "stay 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: c.tolerations}}
			verdict, wait := decide(pod, c.taints, noon, noon.Add(10*time.Second))
			if got := fmt.Sprint(verdict, " ", wait); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A pod that waits is evicted just when its time is up, and not before, by whatever
// it tolerates.
func TestTheTimeOfAPod(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		var taints []corev1.Taint
		pod := &corev1.Pod{}
		shortest, borne := int64(forever), true
		for key := range r.IntN(4) {
			taints = append(taints, taint(fmt.Sprint(key)))
			seconds := int64(r.IntN(6) - 1)
			if r.IntN(5) == 0 {
				borne = false
				continue
			}
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration(fmt.Sprint(key), seconds))
			if seconds != forever && (shortest == forever || seconds < shortest) {
				shortest = seconds
			}
		}
		for second := range int64(7) {
			want := leave
			switch {
			case !borne, shortest != forever && second >= shortest:
				want = evict
			case shortest == forever:
				want = stay
			}
			got, wait := decide(pod, taints, noon, noon.Add(time.Duration(second)*time.Second))
			if got != want || got == leave && wait != time.Duration(shortest-second)*time.Second {
				t.Fatalf("after %d s of %d: %s, in %v; want %s", second, shortest, got, wait, want)
			}
		}
	}
}

// run is a program with the controller.
func run(ctx context.Context, cfg *rest.Config) error {
	o := controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)}
	o.Informers.DetectMutations = true
	base, err := controller.NewBase(cfg, o)
	if err != nil {
		return err
	}
	told := events.New(base, events.Options{Component: "taint-eviction-controller", Logger: o.Logger})
	if err := base.Add(New(base, told)); err != nil {
		return err
	}
	var g errgroup.Group
	g.Go(func() error { return told.Run(ctx) })
	g.Go(func() error { return base.Run(ctx) })
	return g.Wait()
}

// scene is a cluster of nodes n1 and n2, in a bubble.
type scene struct {
	*evenkeeltest.Env
	t *testing.T
}

func bubble(t *testing.T, f func(t *testing.T, s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{evenkeeltest.Start(t, evenkeeltest.Bubble()), t}
		podstest.AddNode(t, s.Env, "n1", "z1")
		podstest.AddNode(t, s.Env, "n2", "z1")
		f(t, s)
	})
}

func (s *scene) taint(node, taints string) {
	s.t.Helper()
	_, err := client.Of[*corev1.Node](s.Conn()).Patch(s.t.Context(), client.Key{Name: node}, client.MergePatch(fmt.Sprintf(`{"spec":{"taints":[%s]}}`, taints)))
	if err != nil {
		s.t.Fatal(err)
	}
}

const (
	unreachable = `{"key":"node.kubernetes.io/unreachable","effect":"NoExecute"}`
	hostile     = `{"key":"example.com/mine","effect":"NoExecute"}`
	repelling   = `{"key":"example.com/mine","effect":"NoSchedule"}`
)

// evicted has time pass, and reports whether a pod is to go then.
func (s *scene) evicted(name string, after time.Duration) bool {
	s.t.Helper()
	time.Sleep(after)
	synctest.Wait()
	p, err := client.Of[*corev1.Pod](s.Conn()).Get(s.t.Context(), client.Key{Namespace: "default", Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return p.DeletionTimestamp != nil
}

// told checks how many events there are about a pod, with a note.
func (s *scene) told(name, note string, want int) {
	s.t.Helper()
	n := 0
	for e, err := range client.Of[*eventsv1.Event](s.Conn()).List(s.t.Context()) {
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Regarding.Name == name && e.Reason == reason && e.Note == note {
			n++
		}
	}
	if n != want {
		s.t.Errorf("%d events %q about %s, want %d", n, note, name, want)
	}
}

func TestPodsAreEvicted(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		s.Run(run)
		podstest.AddPod(t, s.Env, "a", "web", "n1", "10.0.0.1")
		podstest.AddPod(t, s.Env, "b", "web", "n2", "10.0.0.2")
		s.taint("n1", repelling)
		if s.evicted("a", time.Hour) {
			t.Error("a goes for a taint that does not expel")
		}
		s.taint("n1", hostile)
		if !s.evicted("a", time.Second) {
			t.Error("a stays, which tolerates nothing")
		}
		s.told("a", "Marking for deletion Pod default/a", 1)
		p, err := client.Of[*corev1.Pod](s.Conn()).Get(t.Context(), client.Key{Namespace: "default", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		c := p.Status.Conditions[slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type != corev1.PodReady })]
		if c.Type != corev1.DisruptionTarget || c.Status != corev1.ConditionTrue || c.Reason != "DeletionByTaintManager" || c.Message != "Taint manager: deleting due to NoExecute taint" {
			t.Errorf("the condition is %v", c)
		}
		s.taint("n2", unreachable)
		if s.evicted("b", 299*time.Second) {
			t.Error("b goes before its time")
		}
		if !s.evicted("b", 2*time.Second) {
			t.Error("b stays")
		}
	})
}

func TestTaintsThatGoGiveTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		s.Run(run)
		podstest.AddPod(t, s.Env, "a", "web", "n1", "10.0.0.1")
		s.taint("n1", unreachable)
		if s.evicted("a", 200*time.Second) {
			t.Error("a goes before its time")
		}
		podstest.AddPod(t, s.Env, "late", "web", "n1", "10.0.0.2")
		s.taint("n1", "")
		if s.evicted("a", time.Hour) {
			t.Error("a goes, and its node is well")
		}
		s.told("a", "Cancelling deletion of Pod default/a", 1)
		s.taint("n1", unreachable)
		if s.evicted("a", 299*time.Second) {
			t.Error("a is not given its time anew")
		}
		if !s.evicted("a", 2*time.Second) {
			t.Error("a stays")
		}
	})
}

func TestTolerationsCount(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		s.Run(run)
		podstest.AddPod(t, s.Env, "a", "web", "n1", "10.0.0.1")
		s.taint("n1", unreachable)
		s.evicted("a", 200*time.Second)
		// Its time began 200 s ago.
		_, err := client.Of[*corev1.Pod](s.Conn()).Patch(t.Context(), client.Key{Namespace: "default", Name: "a"}, client.JSONPatch(
			`[{"op":"replace","path":"/spec/tolerations/1/tolerationSeconds","value":500}]`))
		if err != nil {
			t.Fatal(err)
		}
		if s.evicted("a", 290*time.Second) {
			t.Error("a goes before its new time")
		}
		if !s.evicted("a", 15*time.Second) {
			t.Error("a stays")
		}
	})
}

func TestConvergesWhenTheServerGoesAway(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		stop := s.Run(run)
		for i, trouble := range []func(){s.Cut, func() { s.Restart(nil) }, func() { stop(); stop = s.Run(run) }} {
			name := fmt.Sprint("p", i)
			podstest.AddPod(t, s.Env, name, "web", "n1", "10.0.0.1")
			s.taint("n1", unreachable)
			trouble()
			if s.evicted(name, 290*time.Second) {
				t.Errorf("round %d: it goes before its time", i)
			}
			if !s.evicted(name, 20*time.Second) {
				t.Errorf("round %d: it stays", i)
			}
			s.taint("n1", "")
			s.evicted(name, time.Second)
		}
	})
}
