package podgc

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// pod is one on a node, with changes.
func pod(name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon)}, Spec: corev1.PodSpec{NodeName: node}}
	p.Status.Phase = corev1.PodRunning
	for _, change := range changes {
		change(p)
	}
	return p
}

func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }
func ended(p *corev1.Pod)       { p.Status.Phase = corev1.PodSucceeded }
func evicted(p *corev1.Pod)     { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" }

func aged(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-d)) }
}

// node is one with taints, and with a readiness if that is not "".
func node(ready corev1.ConditionStatus, taints ...string) *corev1.Node {
	n := &corev1.Node{}
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	}
	for _, t := range taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: t})
	}
	return n
}

func (do plan) String() string {
	var out []string
	for _, r := range do.remove {
		out = append(out, map[bool]string{true: "orphan ", false: ""}[r.orphaned]+r.pod.Name)
	}
	return strings.Join(out, ", ")
}

func TestWhichPodsGo(t *testing.T) {
	const out = corev1.TaintNodeOutOfService
	nodes := map[string]*corev1.Node{
		"well": node(corev1.ConditionTrue), "out": node(corev1.ConditionUnknown, out), "back": node(corev1.ConditionTrue, out), "lost": node(corev1.ConditionUnknown),
	}
	missing := func(ago time.Duration) map[string]time.Time { return map[string]time.Time{"gone": noon.Add(-ago)} }
	for name, c := range map[string]struct {
		pods    []*corev1.Pod
		missing map[string]time.Time
		want    string
	}{
		"one that runs":                    {[]*corev1.Pod{pod("a", "well"), pod("b", "")}, nil, ""},
		"one that ends on a node":          {[]*corev1.Pod{pod("a", "well", terminating), pod("b", "lost", terminating)}, nil, ""},
		"one that ends without a node":     {[]*corev1.Pod{pod("a", "", terminating)}, nil, "a"},
		"one that ends out of service":     {[]*corev1.Pod{pod("a", "out", terminating), pod("b", "out")}, nil, "a"},
		"one that ends on a node in order": {[]*corev1.Pod{pod("a", "back", terminating)}, nil, ""},
		"a node that was never there":      {[]*corev1.Pod{pod("a", "gone")}, nil, ""},
		"a node that is missing":           {[]*corev1.Pod{pod("a", "gone")}, missing(39 * time.Second), ""},
		"a node that is gone":              {[]*corev1.Pod{pod("a", "gone"), pod("b", "gone", ended), pod("c", "well")}, missing(40 * time.Second), "orphan a, orphan b"},
		"just enough that have ended":      {[]*corev1.Pod{pod("a", "well", ended), pod("b", "well", ended)}, nil, ""},
		"the oldest goes": {[]*corev1.Pod{pod("a", "well", ended), pod("c", "well", ended, aged(time.Hour)), pod("b", "well", ended, aged(time.Hour))},
			nil, "b"},
		"one that was evicted goes first": {[]*corev1.Pod{pod("a", "well", evicted), pod("c", "well", ended, aged(time.Hour)), pod("b", "well", ended)},
			nil, "a"},
		"those that go anyway count": {[]*corev1.Pod{pod("a", "well", ended), pod("b", "gone", ended), pod("c", "well", ended)}, missing(time.Hour), "orphan b"},
	} {
		t.Run(name, func(t *testing.T) {
			do := decide(seen{pods: c.pods, nodes: nodes, missing: c.missing, threshold: 2, now: noon})
			if do.String() != c.want {
				t.Errorf("%s go, want %s", do, c.want)
			}
		})
	}
}

// Nodes come and go: pods go just when their node has been missing for long enough,
// without a break.
func TestNodesThatAreMissing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		s := seen{threshold: 1000, now: noon}
		since := map[string]time.Time{}
		for i := range 4 {
			s.pods = append(s.pods, pod(fmt.Sprint("p", i), fmt.Sprint("n", i%3)))
		}
		for range 20 {
			s.now = s.now.Add(period)
			s.nodes = map[string]*corev1.Node{}
			var want []string
			for i := range 3 {
				name := fmt.Sprint("n", i)
				if r.IntN(3) == 0 {
					s.nodes[name] = node("")
					delete(since, name)
				} else if _, ok := since[name]; !ok {
					since[name] = s.now
				}
			}
			for _, p := range s.pods {
				if at, ok := since[p.Spec.NodeName]; ok && s.now.Sub(at) >= quarantine {
					want = append(want, "orphan "+p.Name)
				}
			}
			do := decide(s)
			if got := do.String(); got != strings.Join(want, ", ") {
				t.Fatalf("%s go, want %v", got, want)
			}
			s.missing = do.missing
		}
	}
}

// run is a program with the controller, which lets so many pods be there that have
// ended.
func run(threshold int) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		o := controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)}
		o.Informers.DetectMutations = true
		base, err := controller.NewBase(cfg, o)
		if err != nil {
			return err
		}
		if err := base.Add(newWith(base, threshold)); err != nil {
			return err
		}
		return base.Run(ctx)
	}
}

// left has time pass, and returns the names of the pods that are there then.
func left(t *testing.T, env *evenkeeltest.Env, after time.Duration) string {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	var out []string
	for p, err := range client.Of[*corev1.Pod](env.Conn()).List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func remove[T client.Object](t *testing.T, env *evenkeeltest.Env, key client.Key) {
	t.Helper()
	if err := client.Of[T](env.Conn()).Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

func TestPodsOfANodeThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		for _, n := range []string{"n1", "n2"} {
			podstest.AddNode(t, env, n, "z1")
			podstest.AddPod(t, env, "on-"+n, "web", n, "10.0.0.1")
		}
		env.Run(run(threshold))
		if got := left(t, env, time.Hour); got != "on-n1 on-n2" {
			t.Errorf("left are %q", got)
		}
		remove[*corev1.Node](t, env, client.Key{Name: "n1"})
		if got := left(t, env, 39*time.Second); got != "on-n1 on-n2" {
			t.Errorf("left are %q", got)
		}
		// Before it goes, it says why.
		_, err := client.Of[*corev1.Pod](env.Conn()).Patch(t.Context(), client.Key{Namespace: "default", Name: "on-n1"}, client.MergePatch(`{"metadata":{"finalizers":["example.com/mine"]}}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := left(t, env, time.Minute); got != "on-n1 on-n2" {
			t.Errorf("left are %q", got)
		}
		p, err := client.Of[*corev1.Pod](env.Conn()).Get(t.Context(), client.Key{Namespace: "default", Name: "on-n1"})
		if err != nil {
			t.Fatal(err)
		}
		c := p.Status.Conditions[slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type != corev1.PodReady })]
		if p.DeletionTimestamp == nil || p.Status.Phase != corev1.PodFailed || c.Type != corev1.DisruptionTarget || c.Reason != "DeletionByPodGC" || c.Message != "PodGC: node no longer exists" {
			t.Errorf("it is deleted at %v, %s, %v", p.DeletionTimestamp, p.Status.Phase, c)
		}
		if _, err := client.Of[*corev1.Pod](env.Conn()).Patch(t.Context(), client.KeyOf(p), client.MergePatch(`{"metadata":{"finalizers":null}}`)); err != nil {
			t.Fatal(err)
		}
		if got := left(t, env, time.Minute); got != "on-n2" {
			t.Errorf("left are %q", got)
		}
	})
}

func TestTooManyPodsHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		podstest.AddNode(t, env, "n1", "z1")
		for i := range 5 {
			name := fmt.Sprint("p", i)
			podstest.AddPod(t, env, name, "web", "n1", "10.0.0.1")
			if i > 0 {
				_, err := client.Of[*corev1.Pod](env.Conn()).Status().Patch(t.Context(), client.Key{Namespace: "default", Name: name}, client.MergePatch(`{"status":{"phase":"Succeeded"}}`))
				if err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
		}
		env.Run(run(2))
		if got := left(t, env, time.Second); got != "p0 p3 p4" {
			t.Errorf("left are %q", got)
		}
	})
}

func TestConvergesWhenTheServerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		stop := env.Run(run(threshold))
		for i, trouble := range []func(){env.Cut, func() { env.Restart(nil) }, func() { stop(); stop = env.Run(run(threshold)) }} {
			name := fmt.Sprint("n", i)
			podstest.AddNode(t, env, name, "z1")
			podstest.AddPod(t, env, "p", "web", name, "10.0.0.1")
			if got := left(t, env, time.Minute); got != "p" {
				t.Errorf("round %d: left are %q", i, got)
			}
			remove[*corev1.Node](t, env, client.Key{Name: name})
			trouble()
			if got := left(t, env, 2*time.Minute); got != "" {
				t.Errorf("round %d: left are %q", i, got)
			}
		}
	})
}
