//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
	"github.com/even-keel/evenkeel/bench/machine"
	"github.com/even-keel/evenkeel/client"
)

// stage is a control plane that runs, and the generator's clients of it.
type stage struct {
	*bench
	*machine.Server
	pprof string

	conn        *client.Conn
	nodes       *client.Client[*corev1.Node]
	pods        *client.Client[*corev1.Pod]
	namespaces  *client.Client[*corev1.Namespace]
	deployments *client.Client[*appsv1.Deployment]
	sets        *client.Client[*appsv1.ReplicaSet]
}

// open starts a control plane. Who calls it ends it.
func (b *bench) open(ctx context.Context, dir string, flags ...string) (*stage, error) {
	s := &stage{bench: b}
	var err error
	if b.profile != "" {
		if s.pprof, err = machine.FreeAddress(); err != nil {
			return nil, err
		}
		if err := os.Setenv("EVENKEEL_PPROF", s.pprof); err != nil {
			return nil, err
		}
	}
	if s.Server, err = machine.Serve(ctx, b.program, dir, flags...); err != nil {
		return nil, err
	}
	if err := s.connect(); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

func (s *stage) connect() error {
	config, err := client.LoadConfig(client.ConfigOptions{Kubeconfig: s.Kubeconfig})
	if err != nil {
		return err
	}
	if s.conn, err = client.Connect(config); err != nil {
		return err
	}
	s.nodes, s.pods, s.namespaces = client.Of[*corev1.Node](s.conn), client.Of[*corev1.Pod](s.conn), client.Of[*corev1.Namespace](s.conn)
	s.deployments, s.sets = client.Of[*appsv1.Deployment](s.conn), client.Of[*appsv1.ReplicaSet](s.conn)
	return nil
}

// step measures something that is done to a number of pods.
func (s *stage) step(ctx context.Context, name string, pods int, do func(context.Context) error) error {
	family := machine.Family{s.Child}
	before, err := family.Usage()
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	peak, profiled := make(chan int64, 1), s.profiling(watching, name)
	go func() { peak <- family.Peak(watching) }()
	begun := time.Now()
	err = do(ctx)
	took := time.Since(begun)
	stop()
	most := <-peak
	if err = errors.Join(err, profiled()); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, errors.Join(err, s.Failed()), s.LastWords())
	}
	after, err := family.Usage()
	if err != nil {
		return err
	}
	used, err := family.Resident()
	if err != nil {
		return err
	}
	data, err := machine.SizeOf(s.Data)
	if err != nil {
		return err
	}
	sample := after.Since(before, took, runtime.NumCPU())
	sample.Value, sample.Work = took.Seconds(), float64(pods)
	sample.Memory, sample.Peak, sample.Disk = float64(used)/1e6, float64(most)/1e6, float64(data)/1e6
	s.keep(&s.steps, name, figure.Seconds, figure.Target{}, sample)
	return nil
}

// profiling writes profiles and metrics of what the server does until ctx ends, if
// they are wanted. The function that it returns waits for that.
func (s *stage) profiling(ctx context.Context, name string) func() error {
	if s.pprof == "" {
		return func() error { return nil }
	}
	const slice = "10" // seconds; a profile comes when it is over
	file := filepath.Join(s.profile, strings.ReplaceAll(name, " ", "-"))
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; ctx.Err() == nil && err == nil; i++ {
			err = s.profileTo(fmt.Sprintf("profile?seconds=%s", slice), fmt.Sprintf("%s-%d.cpu", file, i))
		}
		err = errors.Join(err, s.profileTo("heap?gc=1", file+".heap"), s.profileTo("goroutine?debug=1", file+".goroutines"), s.metricsTo(file+".metrics"))
		done <- err
	}()
	return func() error { return <-done }
}

func (s *stage) profileTo(what, file string) error {
	return fetch(http.DefaultClient, "http://"+s.pprof+"/debug/pprof/"+what, file)
}

// metricsTo writes what the server has counted since it started, such as requests.
func (s *stage) metricsTo(file string) error {
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: s.Admin}}
	defer web.CloseIdleConnections()
	return fetch(web, "https://"+s.Address+"/metrics", file)
}

func fetch(by *http.Client, url, file string) error {
	answer, err := by.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, answer.Body)
	return errors.Join(err, out.Close())
}

// together is how many requests of the generator there are at once.
const together = 16

// each calls a function for 0 to n-1, many at a time.
func each(n int, do func(i int) error) error {
	var work sync.WaitGroup
	errs := make([]error, together)
	for w := range together {
		work.Go(func() {
			for i := w; i < n && errs[w] == nil; i += together {
				errs[w] = do(i)
			}
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

// errEnded says that a watch has ended before what was waited for.
var errEnded = errors.New("the watch has ended")

// follow watches from a list on, until the list is complete and all is as it should
// be. What is seen of each object is told before.
func follow[T client.Object](ctx context.Context, of *client.Client[T], see func(obj T, deleted bool), done func() bool, opts ...client.ReadOption) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	listed := false
	for event, err := range of.Watch(ctx, append(opts, client.InitialEvents())...) {
		switch {
		case err != nil:
			return err
		case event.InitialEnd():
			listed = true
		case event.Type == client.Bookmark:
			continue
		default:
			see(event.Object, event.Type == client.Deleted)
		}
		if listed && done() {
			return nil
		}
	}
	return errors.Join(errEnded, ctx.Err())
}
