package node_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/node/simulated"
)

func TestAPodBecomesReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		made := s.create(web("a"))
		p := s.until("a", ready)
		st := p.Status
		if st.Phase != corev1.PodRunning || st.PodIP == "" || st.HostIP == "" || st.StartTime == nil || st.QOSClass != corev1.PodQOSBestEffort {
			t.Errorf("its status is %+v", st)
		}
		if st.ObservedGeneration != made.Generation {
			t.Errorf("it is of generation %d, want %d", st.ObservedGeneration, made.Generation)
		}
		for _, c := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodScheduled"} {
			if err := evenkeeltest.Condition[*corev1.Pod](string(c), "True")(p); err != nil {
				t.Error(err)
			}
		}
		c := st.ContainerStatuses[0]
		if !c.Ready || c.Started == nil || !*c.Started || c.ContainerID != "simulated://"+string(p.UID)+"-app-0" {
			t.Errorf("its container is %+v", c)
		}
		s.wantEvents("Pulled", "Created", "Started")
	})
}

// wantEvents waits until these have been told of pods.
func (s *scene) wantEvents(reasons ...string) {
	s.t.Helper()
	evenkeeltest.EventuallyAll(s.Env, func(all []*eventsv1.Event) error {
		var got []string
		for _, e := range all {
			got = append(got, e.Reason)
		}
		for _, r := range reasons {
			if !slices.Contains(got, r) {
				return fmt.Errorf("no event %s: there are %v", r, got)
			}
		}
		return nil
	})
}

func TestACrashingContainerBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		s.create(web("a", annotated(simulated.RunFor, "1s"), annotated(simulated.ExitCode, "3")))
		p := s.until("a", waits("CrashLoopBackOff"))
		c := p.Status.ContainerStatuses[0]
		if last := c.LastTerminationState.Terminated; last == nil || last.ExitCode != 3 || last.Reason != "Error" || c.RestartCount != 1 {
			t.Errorf("it is %+v", c)
		}
		if want := fmt.Sprintf("back-off 10s restarting failed container=app pod=a_default(%s)", p.UID); c.State.Waiting.Message != want {
			t.Errorf("it says %q, want %q", c.State.Waiting.Message, want)
		}
		if p.Status.Phase != corev1.PodRunning {
			t.Errorf("it is %s", p.Status.Phase)
		}
		s.wantEvents("BackOff")
		began := time.Now()
		s.until("a", restarted(2))
		s.until("a", restarted(3))
		if took := time.Since(began).Round(time.Second); took != 31*time.Second { // 10 s, it runs for 1 s, 20 s
			t.Errorf("the third restart came after %s", took)
		}
	})
}

func TestPodsEndByTheirPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		policy corev1.RestartPolicy
		code   string
		want   corev1.PodPhase
		reason string
	}{
		"a job's pod that is done":   {corev1.RestartPolicyNever, "0", corev1.PodSucceeded, "Completed"},
		"a job's pod that fails":     {corev1.RestartPolicyNever, "2", corev1.PodFailed, "Error"},
		"one that is only restarted": {corev1.RestartPolicyOnFailure, "0", corev1.PodSucceeded, "Completed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := begin(t)
				s.create(web("a", policy(test.policy), annotated(simulated.RunFor, "5s"), annotated(simulated.ExitCode, test.code)))
				p := s.until("a", inPhase(test.want))
				if got := p.Status.ContainerStatuses[0].State.Terminated; got == nil || got.Reason != test.reason {
					t.Errorf("its container is %+v", p.Status.ContainerStatuses[0])
				}
			})
		})
	}
}

func TestInitContainersRunInOrderBesideSidecars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		always := corev1.ContainerRestartPolicyAlways
		s.create(web("a", policy(corev1.RestartPolicyNever), annotated(simulated.RunFor+".first", "1s"), annotated(simulated.RunFor+".second", "1s"),
			annotated(simulated.RunFor+".app", "1s"), func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{
					{Name: "first", Image: "i"}, {Name: "proxy", Image: "i", RestartPolicy: &always}, {Name: "second", Image: "i"},
				}
			}))
		p := s.until("a", inPhase(corev1.PodSucceeded))
		first, proxy, second := p.Status.InitContainerStatuses[0], p.Status.InitContainerStatuses[1], p.Status.InitContainerStatuses[2]
		app := p.Status.ContainerStatuses[0]
		for _, order := range [][2]time.Time{
			{first.State.Terminated.FinishedAt.Time, proxy.State.Terminated.StartedAt.Time},
			{proxy.State.Terminated.StartedAt.Time, second.State.Terminated.StartedAt.Time},
			{second.State.Terminated.FinishedAt.Time, app.State.Terminated.StartedAt.Time},
			{app.State.Terminated.FinishedAt.Time, proxy.State.Terminated.FinishedAt.Time},
		} {
			if order[1].Before(order[0]) {
				t.Errorf("%s is before %s: %+v", order[1], order[0], p.Status)
			}
		}
	})
}

func TestADeletedPodHasItsGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		s.create(web("a", annotated(simulated.StopDelay, "20s")))
		s.until("a", ready)
		began := time.Now()
		if err := s.pods.Delete(t.Context(), client.Key{Name: "a"}); err != nil {
			t.Fatal(err)
		}
		evenkeeltest.EventuallyGone[*corev1.Pod](s.Env, client.Key{Namespace: "default", Name: "a"})
		if took := time.Since(began); took < 19*time.Second || took > 22*time.Second {
			t.Errorf("it went after %s", took)
		}
		s.wantEvents("Killing")
		if left := s.sim.Pods(); len(left) != 0 {
			t.Errorf("the runtime still has %v", left)
		}
	})
}

func TestAPodThatIsReplacedGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		s.create(web("a", annotated(simulated.StopDelay, "1h")))
		old := s.until("a", ready)
		if err := s.pods.Delete(t.Context(), client.Key{Name: "a"}, client.Grace(0)); err != nil {
			t.Fatal(err)
		}
		s.create(web("a"))
		s.until("a", func(p *corev1.Pod) error {
			if p.UID == old.UID {
				return fmt.Errorf("it is the old one")
			}
			return ready(p)
		})
		if left := s.sim.Pods(); len(left) != 1 {
			t.Errorf("the runtime has %v", left)
		}
	})
}

func TestProbes(t *testing.T) {
	probe := func(period int32) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: period, FailureThreshold: 3, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	}
	t.Run("a container that fails its liveness probe is restarted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := begin(t)
			s.create(web("a", annotated(simulated.FailProbe, "liveness"), func(p *corev1.Pod) { p.Spec.Containers[0].LivenessProbe = probe(10) }))
			s.until("a", restarted(1))
			s.wantEvents("Unhealthy", "Killing")
		})
	})
	t.Run("one that fails its readiness probe is not ready", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := begin(t)
			s.create(web("a", annotated(simulated.FailProbe, "readiness"), func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = probe(10) }))
			time.Sleep(time.Minute)
			p := s.get("a")
			if err := evenkeeltest.Condition[*corev1.Pod]("Ready", "False", evenkeeltest.Reason("ContainersNotReady"))(p); err != nil {
				t.Error(err)
			}
			if _, err := s.pods.Patch(t.Context(), client.Key{Name: "a"}, client.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{simulated.FailProbe: nil}}})); err != nil {
				t.Fatal(err)
			}
			s.until("a", ready)
		})
	})
	t.Run("a startup probe holds the others back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := begin(t)
			s.create(web("a", annotated(simulated.FailProbe, "startup"), func(p *corev1.Pod) {
				p.Spec.Containers[0].StartupProbe, p.Spec.Containers[0].ReadinessProbe = probe(10), probe(1)
			}))
			time.Sleep(15 * time.Second)
			if c := s.get("a").Status.ContainerStatuses[0]; *c.Started || c.Ready {
				t.Errorf("it is %+v", c)
			}
			s.until("a", restarted(1))
		})
	})
}

func TestTheDeadlineOfAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		limit := int64(20)
		s.create(web("a", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &limit }))
		began := time.Now()
		p := s.until("a", inPhase(corev1.PodFailed))
		if took := time.Since(began); took < 18*time.Second || p.Status.Reason != "DeadlineExceeded" {
			t.Errorf("after %s, it is %+v", took, p.Status)
		}
	})
}

func TestWhatAContainerNeedsIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		s.create(web("a", func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
		}))
		p := s.until("a", waits("CreateContainerConfigError"))
		if got := p.Status.ContainerStatuses[0].State.Waiting.Message; got != `configmap "settings" not found` {
			t.Errorf("it says %q", got)
		}
		s.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n")
		s.until("a", ready)
	})
}

func TestTheNodeIsRegisteredAndAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		n := evenkeeltest.Eventually(s.Env, client.Key{Name: "n1"}, evenkeeltest.Condition[*corev1.Node]("Ready", "True", evenkeeltest.Reason("KubeletReady")))
		if n.Labels["kubernetes.io/hostname"] != "n1" || n.Labels["kubernetes.io/os"] == "" || n.Labels["kubernetes.io/arch"] == "" {
			t.Errorf("its labels are %v", n.Labels)
		}
		if n.Status.Capacity.Cpu().IsZero() || len(n.Status.Addresses) == 0 || n.Status.NodeInfo.KubeletVersion == "" {
			t.Errorf("its status is %+v", n.Status)
		}
		key := client.Key{Namespace: "kube-node-lease", Name: "n1"}
		leases := client.Of[*coordinationv1.Lease](s.Conn())
		time.Sleep(time.Hour)
		l, err := leases.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if age := time.Since(l.Spec.RenewTime.Time); age > 11*time.Second || l.OwnerReferences[0].UID != n.UID || *l.Spec.HolderIdentity != "n1" {
			t.Errorf("its lease is %s old: %+v", age, l)
		}
		now, err := client.Of[*corev1.Node](s.Conn()).Get(t.Context(), client.Key{Name: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		if age := time.Since(now.Status.Conditions[0].LastHeartbeatTime.Time); age > 6*time.Minute || age < time.Second {
			t.Errorf("its status is %s old", age)
		}
		s.sim.Break("n1", "the machine is on fire")
		evenkeeltest.Eventually(s.Env, client.Key{Name: "n1"}, evenkeeltest.Condition[*corev1.Node]("Ready", "False", evenkeeltest.Reason("KubeletNotReady")))
	})
}
