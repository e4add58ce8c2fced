//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/bench/apiserver/lean"
	"github.com/even-keel/evenkeel/bench/cache/pods"
	"github.com/even-keel/evenkeel/bench/controllers/foo"
	"github.com/even-keel/evenkeel/bench/controllers/side"
)

const (
	foosPath        = "/apis/bench.example.com/v1/namespaces/" + side.Namespace + "/foos"
	deploymentsPath = "/apis/apps/v1/namespaces/" + side.Namespace + "/deployments"
)

// define defines Foos.
func (s *stage) define(c *lean.Conn) error {
	if err := s.do(c, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", foo.Definition); err != nil {
		return err
	}
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if err = s.do(c, "GET", foosPath, ""); err == nil {
			return nil
		}
	}
	return err
}

func newFoo(i int) *foo.Foo {
	name := side.NameOf(i)
	return &foo.Foo{
		TypeMeta:   metav1.TypeMeta{APIVersion: foo.Version.String(), Kind: "Foo"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: side.Namespace, Labels: map[string]string{"app": "bench"}},
		Spec:       foo.Spec{DeploymentName: name, Replicas: 1, Image: "registry.example.com/shop/app:v1.0.0"},
	}
}

func (s *stage) create(c *lean.Conn, path string, obj any) ([]byte, error) {
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return body, s.do(c, "POST", path, string(body))
}

// makeFoos makes Foos, with their Deployments if these are wanted.
func (s *stage) makeFoos(ctx context.Context, n int, owned bool) error {
	if err := s.define(s.conns[0]); err != nil {
		return err
	}
	return s.each(ctx, n, func(c *lean.Conn, i int) error {
		f := newFoo(i)
		if _, err := s.create(c, foosPath, f); err != nil || !owned {
			return err
		}
		d := f.Deployment()
		yes := true
		d.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: f.APIVersion, Kind: f.Kind, Name: f.Name, UID: "00000000-0000-4000-8000-000000000000", Controller: &yes, BlockOwnerDeletion: &yes,
		}}
		_, err := s.create(c, deploymentsPath, d)
		return err
	})
}

// makePods makes pods that run, in many namespaces.
func (s *stage) makePods(ctx context.Context, n int) error {
	err := s.each(ctx, pods.Namespaces, func(c *lean.Conn, i int) error {
		return s.do(c, "POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team-`+strconv.Itoa(i)+`"}}`)
	})
	if err != nil {
		return err
	}
	return s.each(ctx, n, func(c *lean.Conn, i int) error {
		p := pods.Make(i)
		p.APIVersion, p.Kind = "v1", "Pod"
		p.UID, p.ResourceVersion, p.ManagedFields = "", "", nil // which are the server's to make
		path := "/api/v1/namespaces/" + p.Namespace + "/pods"
		body, err := s.create(c, path, p)
		if err != nil {
			return err
		}
		return s.do(c, "PUT", path+"/"+p.Name+"/status", string(body))
	})
}

// change changes objects in turn, n times at a rate, and puts into each when that was
// sent.
func (s *stage) change(ctx context.Context, objects, n, rate int) error {
	begun := time.Now()
	var last atomic.Int64
	return s.each(ctx, n, func(c *lean.Conn, i int) error {
		due := begun.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		body := `{"metadata":{"annotations":{"` + side.SentAt + `":"` + strconv.FormatInt(stamp(&last), 10) + `"}}}`
		return s.do(c, "PATCH", foosPath+"/"+side.NameOf(i%objects), body)
	})
}

// stamp is the time in nanoseconds, and greater than the last.
func stamp(last *atomic.Int64) int64 {
	for {
		before, now := last.Load(), time.Now().UnixNano()
		if now = max(now, before+1); last.CompareAndSwap(before, now) {
			return now
		}
	}
}

// watch has a function be called with each event of a path until ctx ends.
func (s *stage) watch(ctx context.Context, path string, each func(event []byte) error) (wait func() error, err error) {
	c, err := lean.Dial(ctx, s.Address, s.Admin, 64<<10)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	stream, err := c.Stream([]byte("GET " + path + "?watch=true HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: application/json\r\n\r\n"))
	if err != nil {
		stop()
		return nil, errors.Join(err, c.Close())
	}
	done := make(chan error, 1)
	go func() {
		lines := bufio.NewReaderSize(stream, 64<<10)
		for {
			line, err := lines.ReadSlice('\n')
			if err == nil {
				err = each(line)
			}
			if err != nil {
				if ctx.Err() != nil {
					err = nil
				}
				done <- err
				return
			}
		}
	}()
	return func() error { return <-done }, nil
}

// nameIn is the name of the object in an event.
func nameIn(event []byte) string {
	_, after, _ := bytes.Cut(event, []byte(`"name":"foo-`))
	digits, _, _ := bytes.Cut(after, []byte{'"'})
	return "foo-" + string(digits)
}

// becomeReady makes Foos, plays the controller of their Deployments, and returns how
// long it took until all were ready. All are deleted after that.
func (s *stage) becomeReady(ctx context.Context, n int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	all := make(chan struct{})
	made := make(chan string, n)
	ready, available := map[string]bool{}, map[string]bool{}
	waitFoos, err := s.watch(ctx, foosPath, func(event []byte) error {
		if bytes.HasPrefix(event, []byte(`{"type":"MODIFIED"`)) && bytes.Contains(event, []byte(`"ready":true`)) {
			if name := nameIn(event); !ready[name] {
				ready[name] = true
				if len(ready) == n {
					close(all)
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	waitDeployments, err := s.watch(ctx, deploymentsPath, func(event []byte) error {
		if bytes.HasPrefix(event, []byte(`{"type":"ADDED"`)) {
			if name := nameIn(event); !available[name] {
				available[name] = true
				made <- name
				if len(available) == n {
					close(made)
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	half := *s
	half.conns = s.conns[:writers/2]
	var work sync.WaitGroup
	var rolled error
	begun := time.Now()
	work.Go(func() { rolled = s.rollOut(ctx, s.conns[writers/2:], made) })
	err = half.each(ctx, n, func(c *lean.Conn, i int) error {
		_, err := s.create(c, foosPath, newFoo(i))
		return err
	})
	if err == nil {
		select {
		case <-all:
		case <-ctx.Done():
			err = fmt.Errorf("%d Foos are not ready: %w", n, ctx.Err())
		}
	}
	took := time.Since(begun)
	cancel()
	work.Wait()
	err = errors.Join(err, rolled, waitFoos(), waitDeployments())
	for _, path := range []string{foosPath, deploymentsPath} {
		err = errors.Join(err, s.do(s.conns[0], "DELETE", path, ""))
	}
	return took, err
}

// rollOut has Deployments be available.
func (s *stage) rollOut(ctx context.Context, conns []*lean.Conn, made <-chan string) error {
	const body = `{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1}}`
	var group sync.WaitGroup
	errs := make([]error, len(conns))
	for w, c := range conns {
		group.Go(func() {
			for errs[w] == nil {
				select {
				case name, more := <-made:
					if !more {
						return
					}
					errs[w] = s.do(c, "PATCH", deploymentsPath+"/"+name+"/status", body)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
