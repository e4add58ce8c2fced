package simulated_test

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/runtimetest"
	"github.com/even-keel/evenkeel/node/simulated"
)

func TestRuntime(t *testing.T) {
	runtimetest.Run(t, func(*testing.T) runtimetest.Subject {
		return runtimetest.Subject{
			Runtime: simulated.New(simulated.Options{Life: simulated.Life{StartDelay: 1}}),
			Behave:  behave,
			Around:  func(t *testing.T, test func(*testing.T)) { synctest.Test(t, test) },
		}
	})
}

func behave(p *corev1.Pod, c *corev1.Container, b runtimetest.Behaviour) {
	set := func(key, value string) { p.Annotations[key+"."+c.Name] = value }
	if b.ExitCode >= 0 {
		set(simulated.RunFor, "1s")
		set(simulated.ExitCode, fmt.Sprint(b.ExitCode))
	}
	if b.Deaf {
		set(simulated.StopDelay, "24h")
	}
	if b.Unhealthy {
		set(simulated.FailProbe, "all")
	}
	if b.Impossible {
		set(simulated.FailStart, "out of luck")
	}
}

func pod(name string) node.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	return node.Pod{ID: node.PodID{Key: client.KeyOf(p), UID: p.UID}, Object: p}
}

func TestAddressesAreGivenBack(t *testing.T) {
	r := simulated.New(simulated.Options{Pods: netip.MustParsePrefix("10.9.0.0/30")})
	for _, name := range []string{"a", "b", "c"} {
		if err := r.Prepare(t.Context(), pod(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Prepare(t.Context(), pod("d")); err == nil {
		t.Error("there are more addresses than there are")
	}
	b, _ := r.Observe(pod("b").ID)
	if err := r.Remove(t.Context(), pod("b").ID); err != nil {
		t.Fatal(err)
	}
	if err := r.Prepare(t.Context(), pod("d")); err != nil {
		t.Fatal(err)
	}
	if d, _ := r.Observe(pod("d").ID); fmt.Sprint(d.IPs) != fmt.Sprint(b.IPs) {
		t.Errorf("it has %v, not %v", d.IPs, b.IPs)
	}
}

func TestAnnotationsThatCannotBeReadAreTold(t *testing.T) {
	r := simulated.New(simulated.Options{})
	p := pod("a")
	p.Object.Annotations = map[string]string{simulated.RunFor: "soon"}
	if err := r.Prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	err := r.Start(t.Context(), p.ID, node.Container{Spec: &corev1.Container{Name: "app"}})
	if want := `annotation evenkeel.dev/run-for: time: invalid duration "soon"`; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}
