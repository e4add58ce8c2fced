package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/node/remote"
)

// Interactive is a runtime whose containers people can get at while they run. The
// streams are the caller's, and are there until the call returns.
type Interactive interface {
	// Exec runs a command beside a container's process, until it ends or is killed
	// because ctx or the container did. A [remote.ExitError] is how it ended.
	Exec(ctx context.Context, id PodID, container string, command []string, s remote.Streams) error
	// Attach connects to a container's process, until that or ctx ends: to what it
	// writes from now on, and to its input if it has one.
	Attach(ctx context.Context, id PodID, container string, s remote.Streams) error
	// Dial connects to a port of a pod.
	Dial(ctx context.Context, id PodID, port int32) (net.Conn, error)
}

var (
	errNotInteractive = errors.New("runs no commands")
	errNotRunning     = errors.New("does not run")
	errEnds           = errors.New("the agent ends")
)

// serveExec runs a command in a container.
func (a *Agent) serveExec(w http.ResponseWriter, r *http.Request) {
	command := r.URL.Query()["command"]
	if len(command) == 0 {
		refuse(w, &refusal{errBadRequest, "you must specify at least one command for the container"})
		return
	}
	a.serveStreams(w, r, "exec", "error executing command in container", func(ctx context.Context, rt Interactive, id PodID, container string, s remote.Streams) error {
		return rt.Exec(ctx, id, container, command, s)
	})
}

// serveAttach connects to the process of a container.
func (a *Agent) serveAttach(w http.ResponseWriter, r *http.Request) {
	a.serveStreams(w, r, "attach", "error attaching to container", func(ctx context.Context, rt Interactive, id PodID, container string, s remote.Streams) error {
		return rt.Attach(ctx, id, container, s)
	})
}

type interaction func(ctx context.Context, rt Interactive, id PodID, container string, s remote.Streams) error

// serveStreams upgrades a request and does what it asks for.
func (a *Agent) serveStreams(w http.ResponseWriter, r *http.Request, what, failed string, do interaction) {
	want, err := remote.WantOf(r.URL.Query())
	if err != nil {
		refuse(w, &refusal{errBadRequest, err.Error()})
		return
	}
	ctx, leave, err := a.sessions.enter(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	defer leave()
	rt, pod, err := a.interactive(r, what)
	container := r.PathValue("container")
	if err == nil {
		err = a.runs(pod, container)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	remote.Command(w, r.WithContext(ctx), want, func(ctx context.Context, s remote.Streams) error {
		if err := do(ctx, rt, idOf(pod), container, s); err != nil {
			return fmt.Errorf("%s: %w", failed, err)
		}
		return nil
	})
}

// servePorts connects to the ports of a pod.
func (a *Agent) servePorts(w http.ResponseWriter, r *http.Request) {
	ctx, leave, err := a.sessions.enter(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	defer leave()
	rt, pod, err := a.interactive(r, "port-forward")
	if err == nil && !slices.Contains([]corev1.PodPhase{corev1.PodRunning, corev1.PodPending}, pod.Status.Phase) {
		err = &refusal{errNotRunning, fmt.Sprintf("pod %s does not run: it is %s", pod.Name, pod.Status.Phase)}
	}
	if err != nil {
		refuse(w, err)
		return
	}
	remote.Ports(w, r.WithContext(ctx), pod.Name, func(ctx context.Context, port int32) (net.Conn, error) {
		return rt.Dial(ctx, idOf(pod), port)
	})
}

// interactive finds the pod of a request, and the runtime if it can do what is asked.
func (a *Agent) interactive(r *http.Request, what string) (Interactive, *corev1.Pod, error) {
	pod, err := a.pods.Get(r.Context(), client.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")})
	if err != nil {
		return nil, nil, err
	}
	rt, ok := a.runtime.(Interactive)
	if !ok {
		return nil, nil, &refusal{errNotInteractive, fmt.Sprintf(
			"%s is not possible: the runtime %q of node %s runs nothing. Use one that does, such as \"process\"", what, a.runtime.Name(), pod.Spec.NodeName)}
	}
	return rt, pod, nil
}

// runs is nil if a container runs.
func (a *Agent) runs(pod *corev1.Pod, container string) error {
	seen, _ := a.runtime.Observe(idOf(pod))
	for _, c := range seen.Containers {
		if c.Name == container && c.Phase == Running {
			return nil
		}
	}
	return &refusal{errNotRunning, fmt.Sprintf("container not found (%q)", container)}
}

// sessions are the connections to containers, which end with the agent.
type sessions struct {
	active sync.WaitGroup

	mu    sync.Mutex
	ended bool
	next  int
	all   map[int]context.CancelFunc
}

// enter begins a session, whose context ends with the agent's work. Call leave when it
// has ended.
func (s *sessions) enter(ctx context.Context) (_ context.Context, leave func(), _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, nil, errEnds
	}
	ctx, cancel := context.WithCancel(ctx)
	s.next++
	id := s.next
	setIn(&s.all, id, cancel)
	s.active.Add(1)
	return ctx, func() {
		cancel()
		s.mu.Lock()
		delete(s.all, id)
		s.mu.Unlock()
		s.active.Done()
	}, nil
}

// end ends all sessions, and waits for them.
func (s *sessions) end() {
	s.mu.Lock()
	s.ended = true
	for _, cancel := range s.all {
		cancel()
	}
	s.mu.Unlock()
	s.active.Wait()
}
