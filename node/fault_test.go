package node_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/simulated"
)

func TestANodeOutlivesItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		s.create(web("a", annotated(simulated.StartDelay, "5s")))
		s.create(web("b", policy(corev1.RestartPolicyNever), annotated(simulated.RunFor, "1m")))
		s.until("b", inPhase(corev1.PodRunning))
		s.Restart(func() { time.Sleep(2 * time.Minute) })
		s.until("a", ready)
		s.until("b", inPhase(corev1.PodSucceeded))
		time.Sleep(20 * time.Second)
		l, err := client.Of[*coordinationv1.Lease](s.Conn()).Get(t.Context(), client.Key{Namespace: "kube-node-lease", Name: "n1"})
		if err != nil || time.Since(l.Spec.RenewTime.Time) > 11*time.Second {
			t.Errorf("its lease is %+v: %v", l, err)
		}
	})
}

func TestPodsComeToBeWhileConnectionsBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		for i := range 20 {
			s.create(web(fmt.Sprint("p", i)))
			s.Cut()
			time.Sleep(100 * time.Millisecond)
		}
		for i := range 20 {
			s.until(fmt.Sprint("p", i), ready)
		}
	})
}

func TestAnAgentThatStartsAnewTakesUpItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		s.create(web("runs"))
		s.create(web("done", policy(corev1.RestartPolicyNever), annotated(simulated.RunFor, "1s")))
		s.create(web("works", policy(corev1.RestartPolicyNever), annotated(simulated.RunFor, "30s")))
		s.create(web("goes", annotated(simulated.StopDelay, "10s")))
		was := s.until("runs", ready)
		s.until("works", ready)
		s.until("goes", ready)
		done := s.until("done", inPhase(corev1.PodSucceeded))
		s.stop()
		if err := s.pods.Delete(t.Context(), client.Key{Name: "goes"}); err != nil {
			t.Fatal(err)
		}
		s.Run(agent(simulated.New(simulated.Options{}), one()))
		evenkeeltest.EventuallyGone[*corev1.Pod](s.Env, client.Key{Namespace: "default", Name: "goes"})
		time.Sleep(time.Minute)
		now := s.get("runs")
		if c := now.Status.ContainerStatuses[0]; c.RestartCount != 0 || c.State.Running == nil || now.Status.PodIP != was.Status.PodIP {
			t.Errorf("it is %+v", now.Status)
		}
		if now := s.get("works"); now.Status.Phase != corev1.PodSucceeded || now.Status.ContainerStatuses[0].State.Terminated.Reason != "Completed" {
			t.Errorf("what was at work is %+v", now.Status)
		}
		if now := s.get("done"); now.ResourceVersion != done.ResourceVersion {
			t.Errorf("what was done has changed: %+v", now.Status)
		}
	})
}

func TestManyNodesShareAnAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		var o node.Options
		for i := range 50 {
			o.Nodes = append(o.Nodes, node.Node{Name: fmt.Sprint("n", i)})
		}
		env.Run(agent(simulated.New(simulated.Options{}), o))
		pods := client.Of[*corev1.Pod](env.Conn())
		for i := range 200 {
			if _, err := pods.Create(t.Context(), web(fmt.Sprint("p", i), func(p *corev1.Pod) { p.Spec.NodeName = fmt.Sprint("n", i%60) })); err != nil {
				t.Fatal(err)
			}
		}
		ips := map[string]string{}
		evenkeeltest.EventuallyAll(env, func(all []*corev1.Pod) error {
			n := 0
			for _, p := range all {
				if p.Status.Phase == corev1.PodRunning {
					n++
					ips[p.Status.PodIP] = p.Name
				}
			}
			if n != 170 { // those of ten nodes that the agent does not stand for do not
				return fmt.Errorf("%d run", n)
			}
			return nil
		})
		if len(ips) != 170 {
			t.Errorf("they have %d addresses", len(ips))
		}
		evenkeeltest.EventuallyAll(env, func(all []*coordinationv1.Lease) error {
			if len(all) != 50 {
				return fmt.Errorf("there are %d leases", len(all))
			}
			return nil
		})
	})
}
