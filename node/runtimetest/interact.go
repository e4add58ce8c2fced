package runtimetest

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/remote"
)

// interactive returns the runtime with a container c0 that runs; false if it is not
// one whose containers people can get at, and does not say that it is.
func (s *stage) interactive() (node.Interactive, node.PodID, bool) {
	s.t.Helper()
	rt, is := s.Runtime.(node.Interactive)
	if is != s.Interactive {
		s.t.Fatalf("that people can get at its containers is %v, not %v", is, s.Interactive)
	}
	if !is {
		return nil, node.PodID{}, false
	}
	id, p := s.pod(Forever)
	s.started(id, p, 0, 0)
	return rt, id, true
}

func (s *stage) runsCommands() {
	rt, id, is := s.interactive()
	if !is {
		return
	}
	in, to := io.Pipe()
	go func() {
		_, _ = io.WriteString(to, "ahoy\n")
		_ = to.Close()
	}()
	var out, errs strings.Builder
	err := rt.Exec(s.t.Context(), id, "c0", []string{"sh", "-c", "cat; echo no >&2; exit 3"}, remote.Streams{Stdin: in, Stdout: &out, Stderr: &errs})
	var exit *remote.ExitError
	if !errors.As(err, &exit) || exit.Code != 3 || out.String() != "ahoy\n" || errs.String() != "no\n" {
		s.t.Errorf("it wrote %q and %q, and ended with %v", out.String(), errs.String(), err)
	}
	if err := rt.Exec(s.t.Context(), id, "c0", []string{"true"}, remote.Streams{}); err != nil {
		s.t.Errorf("one that ends well: %v", err)
	}
	if err := rt.Exec(s.t.Context(), id, "c0", []string{"evenkeel-no-such-command"}, remote.Streams{}); err == nil || errors.As(err, &exit) {
		s.t.Errorf("one that is not there: %v", err)
	}
}

func (s *stage) endsCommands() {
	rt, id, is := s.interactive()
	if !is {
		return
	}
	ctx, leave := context.WithCancel(s.t.Context())
	defer leave()
	in, _ := io.Pipe() // which never ends
	err := rt.Exec(ctx, id, "c0", []string{"sh", "-c", "echo ready; exec sleep 60"}, remote.Streams{Stdin: in, Stdout: calls(leave)})
	if !errors.Is(err, context.Canceled) {
		s.t.Errorf("when its client leaves, it ends with %v", err)
	}
	stop := func() { s.Runtime.Stop(id, "c0", node.Stop{}) }
	err = rt.Exec(s.t.Context(), id, "c0", []string{"sh", "-c", "echo ready; exec sleep 60"}, remote.Streams{Stdout: calls(stop)})
	var exit *remote.ExitError
	if !errors.As(err, &exit) || exit.Code != 137 {
		s.t.Errorf("when its container ends, it ends with %v", err)
	}
}

// calls is a writer that calls a function.
type calls func()

func (c calls) Write(p []byte) (int, error) {
	c()
	return len(p), nil
}

func (s *stage) attaches() {
	rt, id, is := s.interactive()
	if !is {
		return
	}
	ctx, leave := context.WithCancel(s.t.Context())
	leave()
	if err := rt.Attach(ctx, id, "c0", remote.Streams{}); !errors.Is(err, context.Canceled) {
		s.t.Errorf("a client that leaves: %v", err)
	}
	var attached sync.WaitGroup
	attached.Go(func() {
		if err := rt.Attach(s.t.Context(), id, "c0", remote.Streams{Stdout: io.Discard}); err != nil && !errors.Is(err, node.ErrUnknownContainer) {
			s.t.Errorf("a container that ends: %v", err)
		}
	})
	s.Runtime.Stop(id, "c0", node.Stop{})
	attached.Wait()
}

func (s *stage) knowsWhatRuns() {
	rt, id, is := s.interactive()
	if !is {
		return
	}
	none := node.PodID{Key: client.Key{Name: "none"}, UID: "none"}
	for what, test := range map[string]struct {
		got, want error
	}{
		"exec in no pod":            {rt.Exec(s.t.Context(), none, "c0", []string{"true"}, remote.Streams{}), node.ErrUnknownPod},
		"exec in no container":      {rt.Exec(s.t.Context(), id, "c9", []string{"true"}, remote.Streams{}), node.ErrUnknownContainer},
		"attach to no pod":          {rt.Attach(s.t.Context(), none, "c0", remote.Streams{}), node.ErrUnknownPod},
		"attach to no container":    {rt.Attach(s.t.Context(), id, "c9", remote.Streams{}), node.ErrUnknownContainer},
		"connect to a port of none": {second(rt.Dial(s.t.Context(), none, 1)), node.ErrUnknownPod},
	} {
		if !errors.Is(test.got, test.want) {
			s.t.Errorf("%s: %v, want %v", what, test.got, test.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }
