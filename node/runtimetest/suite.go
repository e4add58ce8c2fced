// Package runtimetest is the suite that every runtime of the node agent passes.
package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/node"
)

// Behaviour is what a container does.
type Behaviour struct {
	// ExitCode is how it ends by itself, soon after its start; negative is not.
	ExitCode int32
	// Deaf has it not end when it is told to.
	Deaf bool
	// Unhealthy has its probe fail.
	Unhealthy bool
	// Impossible has it not start.
	Impossible bool
}

// Forever is a container that runs until it is told to end.
var Forever = Behaviour{ExitCode: -1}

// Subject is a runtime to test.
type Subject struct {
	Runtime node.Runtime
	// Behave has a container of a pod behave so, before anything of it is started.
	Behave func(p *corev1.Pod, c *corev1.Container, b Behaviour)
	// Probe is one that a container answers as it behaves.
	Probe corev1.Probe
	// Interactive says that the runtime is a [node.Interactive]; sh is then a command.
	Interactive bool
	// Settle waits until a container that has started does as it behaves; nil if it does
	// at once.
	Settle func(id node.PodID, container string)
	// Around runs each test, in a bubble if the runtime can live in one.
	Around func(t *testing.T, test func(t *testing.T))
}

// patience is how long something may take that has to happen.
const patience = 30 * time.Second

// Run runs the suite: each test on a runtime of its own.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for name, test := range map[string]func(*stage){
		"a container runs until it is told to end":       (*stage).runsUntilStopped,
		"a container's exit code is seen":                (*stage).exits,
		"a container that does not listen is killed":     (*stage).kills,
		"the time to end can be shortened":               (*stage).shortens,
		"a container runs again, and the last is known":  (*stage).restarts,
		"containers of a pod are told apart":             (*stage).tellsApart,
		"what cannot start says why":                     (*stage).refuses,
		"probes are answered":                            (*stage).probes,
		"a pod that is removed is not known":             (*stage).removes,
		"to remove a pod ends what runs":                 (*stage).removesRunning,
		"to prepare a pod twice is once":                 (*stage).preparesTwice,
		"pods of one name are told apart by their UIDs":  (*stage).tellsUIDsApart,
		"what is not prepared cannot be started":         (*stage).wantsPreparation,
		"a machine has capacity, an address and a name ": (*stage).isAMachine,
		"commands run beside a container":                (*stage).runsCommands,
		"commands end with client and container":         (*stage).endsCommands,
		"who is attached stays until a container's end":  (*stage).attaches,
		"only what runs can be got at":                   (*stage).knowsWhatRuns,
	} {
		t.Run(name, func(t *testing.T) {
			around := open(t).Around
			around(t, func(t *testing.T) { test(newStage(t, open(t))) })
		})
	}
}

// stage is a runtime that runs, and what it told.
type stage struct {
	Subject
	t    *testing.T
	wake chan struct{}
	pods int
}

func newStage(t *testing.T, s Subject) *stage {
	st := &stage{Subject: s, t: t, wake: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Runtime.Run(ctx, st.told); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return st
}

func (s *stage) told(node.PodID) {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// pod prepares a pod whose containers behave so, called c0, c1 and so on.
func (s *stage) pod(all ...Behaviour) (node.PodID, *corev1.Pod) {
	s.t.Helper()
	s.pods++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "p", UID: types.UID(fmt.Sprint("uid-", s.pods)), Annotations: map[string]string{},
	}}
	for i := range all {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Image: "image"})
	}
	for i := range all {
		s.Behave(p, &p.Spec.Containers[i], all[i])
	}
	id := node.PodID{Key: client.KeyOf(p), UID: p.UID}
	if err := s.Runtime.Prepare(s.t.Context(), node.Pod{ID: id, Object: p}); err != nil {
		s.t.Fatal(err)
	}
	return id, p
}

func (s *stage) start(id node.PodID, p *corev1.Pod, container int, attempt int32) error {
	c := &p.Spec.Containers[container]
	return s.Runtime.Start(s.t.Context(), id, node.Container{Spec: c, Attempt: attempt, Command: c.Command, Args: c.Args})
}

func (s *stage) started(id node.PodID, p *corev1.Pod, container int, attempt int32) {
	s.t.Helper()
	if err := s.start(id, p, container, attempt); err != nil {
		s.t.Fatal(err)
	}
	s.until(id, container, func(c node.ContainerState) bool { return c.Phase != node.Starting })
	if s.Settle != nil {
		s.Settle(id, fmt.Sprint("c", container))
	}
}

// until waits until a container is as wanted, and returns it.
func (s *stage) until(id node.PodID, container int, want func(node.ContainerState) bool) node.ContainerState {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		seen, _ := s.Runtime.Observe(id)
		for _, c := range seen.Containers {
			if c.Name == fmt.Sprint("c", container) && want(c) {
				return c
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("it is %+v", seen)
		}
		next := deadline
		if !seen.Next.IsZero() {
			next = seen.Next
		}
		timer := time.NewTimer(time.Until(next) + time.Millisecond)
		select {
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func exited(c node.ContainerState) bool { return c.Phase == node.Exited }

func (s *stage) runsUntilStopped() {
	id, p := s.pod(Forever)
	s.started(id, p, 0, 0)
	c := s.until(id, 0, func(c node.ContainerState) bool { return c.Phase == node.Running })
	if c.ID == "" || c.StartedAt.IsZero() || !c.StopBy.IsZero() || c.Exit != nil {
		s.t.Errorf("it is %+v", c)
	}
	began := time.Now()
	s.Runtime.Stop(id, "c0", node.Stop{Grace: 20 * time.Second})
	c = s.until(id, 0, exited)
	if took := time.Since(began); took >= 20*time.Second || c.Exit.FinishedAt.Before(c.Exit.StartedAt) || c.Exit.ID != c.ID {
		s.t.Errorf("after %s, it is %+v", took, c.Exit)
	}
}

func (s *stage) exits() {
	for _, code := range []int32{0, 7} {
		id, p := s.pod(Behaviour{ExitCode: code})
		s.started(id, p, 0, 0)
		if c := s.until(id, 0, exited); c.Exit.Code != code || c.Exit.Signal != 0 {
			s.t.Errorf("it ended with %+v, want %d", c.Exit, code)
		}
	}
}

func (s *stage) kills() {
	id, p := s.pod(Behaviour{ExitCode: -1, Deaf: true})
	s.started(id, p, 0, 0)
	began := time.Now()
	s.Runtime.Stop(id, "c0", node.Stop{Grace: time.Second})
	if c := s.until(id, 0, func(c node.ContainerState) bool { return true }); c.StopBy.IsZero() && c.Phase != node.Exited {
		s.t.Errorf("it was not told: %+v", c)
	}
	c := s.until(id, 0, exited)
	if took := time.Since(began); took < time.Second || c.Exit.Code != 137 {
		s.t.Errorf("after %s, it ended with %+v", took, c.Exit)
	}
}

func (s *stage) shortens() {
	id, p := s.pod(Behaviour{ExitCode: -1, Deaf: true})
	s.started(id, p, 0, 0)
	s.Runtime.Stop(id, "c0", node.Stop{Grace: time.Hour})
	s.Runtime.Stop(id, "c0", node.Stop{Grace: time.Second})
	if c := s.until(id, 0, exited); c.Exit.Code != 137 {
		s.t.Errorf("it ended with %+v", c.Exit)
	}
}

func (s *stage) restarts() {
	id, p := s.pod(Behaviour{ExitCode: 3})
	s.started(id, p, 0, 0)
	first := s.until(id, 0, exited)
	s.started(id, p, 0, 1)
	second := s.until(id, 0, func(c node.ContainerState) bool { return exited(c) && c.Attempt == 1 })
	if second.Last == nil || second.Last.Code != 3 || second.Last.ID != first.ID || second.ID == first.ID {
		s.t.Errorf("after %+v, it is %+v", first, second)
	}
}

func (s *stage) tellsApart() {
	id, p := s.pod(Forever, Behaviour{ExitCode: 4})
	s.started(id, p, 0, 0)
	s.started(id, p, 1, 0)
	s.until(id, 1, exited)
	if c := s.until(id, 0, func(node.ContainerState) bool { return true }); c.Phase != node.Running {
		s.t.Errorf("it is %+v", c)
	}
}

func (s *stage) refuses() {
	id, p := s.pod(Behaviour{Impossible: true})
	err := s.start(id, p, 0, 0)
	failure := new(node.Failure)
	if !errors.As(err, &failure) || failure.Reason == "" || failure.Message == "" {
		s.t.Errorf("the error is %v", err)
	}
}

func (s *stage) probes() {
	well, p := s.pod(Forever)
	s.started(well, p, 0, 0)
	probe := node.Probe{Kind: node.Liveness, Spec: &s.Probe}
	if err := s.Runtime.Probe(s.t.Context(), well, "c0", probe); err != nil {
		s.t.Errorf("one that is well: %v", err)
	}
	ill, p := s.pod(Behaviour{ExitCode: -1, Unhealthy: true})
	s.started(ill, p, 0, 0)
	if err := s.Runtime.Probe(s.t.Context(), ill, "c0", probe); !errors.Is(err, node.ErrUnhealthy) {
		s.t.Errorf("one that is not: %v", err)
	}
	if err := s.Runtime.Probe(s.t.Context(), well, "c9", probe); !errors.Is(err, node.ErrUnknownContainer) {
		s.t.Errorf("one that is not there: %v", err)
	}
}

func (s *stage) removes() {
	id, p := s.pod(Behaviour{ExitCode: 0})
	s.started(id, p, 0, 0)
	s.until(id, 0, exited)
	for range 2 {
		if err := s.Runtime.Remove(s.t.Context(), id); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, known := s.Runtime.Observe(id); known || len(s.Runtime.Pods()) != 0 {
		s.t.Errorf("it is known: %v", s.Runtime.Pods())
	}
}

func (s *stage) removesRunning() {
	id, p := s.pod(Behaviour{ExitCode: -1, Deaf: true})
	s.started(id, p, 0, 0)
	if err := s.Runtime.Remove(s.t.Context(), id); err != nil {
		s.t.Fatal(err)
	}
	if _, known := s.Runtime.Observe(id); known {
		s.t.Error("it is known")
	}
}

func (s *stage) preparesTwice() {
	id, p := s.pod(Forever)
	s.started(id, p, 0, 0)
	before, _ := s.Runtime.Observe(id)
	if err := s.Runtime.Prepare(s.t.Context(), node.Pod{ID: id, Object: p}); err != nil {
		s.t.Fatal(err)
	}
	after, _ := s.Runtime.Observe(id)
	if len(after.Containers) != 1 || after.Containers[0].ID != before.Containers[0].ID || fmt.Sprint(after.IPs) != fmt.Sprint(before.IPs) {
		s.t.Errorf("it was %+v and is %+v", before, after)
	}
}

func (s *stage) tellsUIDsApart() {
	first, p := s.pod(Forever)
	s.started(first, p, 0, 0)
	second, p := s.pod(Behaviour{ExitCode: 5})
	s.started(second, p, 0, 0)
	s.until(second, 0, exited)
	if c := s.until(first, 0, func(node.ContainerState) bool { return true }); c.Phase != node.Running {
		s.t.Errorf("it is %+v", c)
	}
	if n := len(s.Runtime.Pods()); n != 2 {
		s.t.Errorf("there are %d pods", n)
	}
}

func (s *stage) wantsPreparation() {
	_, p := s.pod(Forever)
	none := node.PodID{Key: client.KeyOf(p), UID: "none"}
	if err := s.start(none, p, 0, 0); !errors.Is(err, node.ErrUnknownPod) {
		s.t.Errorf("the error is %v", err)
	}
	s.Runtime.Stop(none, "c0", node.Stop{})
	if _, known := s.Runtime.Observe(none); known {
		s.t.Error("it is known")
	}
}

func (s *stage) isAMachine() {
	m := s.Runtime.Machine("n1")
	if m.Capacity.Cpu().IsZero() || m.Capacity.Memory().IsZero() || m.Capacity.Pods().IsZero() || len(m.Addresses) == 0 || m.NotReady != "" {
		s.t.Errorf("it is %+v", m)
	}
	if s.Runtime.Name() == "" || m.Info.KubeletVersion == "" || m.Info.OperatingSystem == "" {
		s.t.Errorf("it is %s with %+v", s.Runtime.Name(), m.Info)
	}
}
