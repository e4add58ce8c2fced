package side

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// Answer is what a side tells its parent, one line of JSON each.
type Answer map[string]float64

// Main runs what the flags say; run runs the job's controller, in a manager, until
// ctx ends.
func Main(run func(ctx context.Context, j *Job) error) {
	flags := flag.NewFlagSet("side", flag.ExitOnError) // a library has some of its own
	var (
		task       = flags.String("task", "", "what to do")
		kubeconfig = flags.String("kubeconfig", "", "the `file`")
		objects    = flags.Int("objects", 0, "how many there are")
		workers    = flags.Int("workers", 8, "how many work")
		passes     = flags.Int("passes", 1, "how often all are reconciled")
		profile    = flags.String("cpuprofile", "", "write a profile to a `file`")
	)
	_ = flags.Parse(os.Args[1:]) // which exits
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	s := &session{passes: *passes, in: bufio.NewScanner(os.Stdin), out: json.NewEncoder(os.Stdout)}
	if err := s.main(Task(*task), *kubeconfig, *objects, *workers, *profile, run); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// session is a talk with the parent.
type session struct {
	passes int
	in     *bufio.Scanner
	out    *json.Encoder
	job    *Job
	begun  time.Time
}

func (s *session) main(t Task, kubeconfig string, objects, workers int, profile string, run func(context.Context, *Job) error) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	cfg.QPS = -1 // no limit
	s.job = newJob(t, cfg, objects, workers)
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	s.begun = time.Now()
	go func() {
		err := run(ctx, s.job)
		cancel()
		ran <- err
	}()
	err = s.talk(ctx)
	cancel()
	return errors.Join(err, <-ran)
}

func (s *session) talk(ctx context.Context) error {
	if s.job.Task == Foo {
		return s.listen()
	}
	if err := s.whole(ctx); err != nil {
		return err
	}
	took := time.Since(s.begun)
	switch s.job.Task {
	case Read, Write:
		time.Sleep(settle) // events that are behind are not part of a pass
		return s.passAll(ctx, took)
	}
	if err := s.out.Encode(Answer{"synced": took.Seconds()}); err != nil {
		return err
	}
	return s.listen()
}

// settle is how long a controller is left alone after it has begun.
const settle = time.Second

// whole waits until a pass is done.
func (s *session) whole(ctx context.Context) error {
	select {
	case <-s.job.all:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// passAll has all keys be reconciled again and again, and tells how that went.
func (s *session) passAll(ctx context.Context, start time.Duration) error {
	before, begun := cpu(), time.Now()
	for pass := range s.passes {
		s.job.begin(int64(pass) + 2)
		for i := range s.job.Objects {
			s.job.Enqueue(i)
		}
		if err := s.whole(ctx); err != nil {
			return err
		}
	}
	took, done := time.Since(begun).Seconds(), float64(s.passes*s.job.Objects)
	return s.out.Encode(Answer{
		"start":      float64(s.job.Objects) / start.Seconds(),
		"reconciles": done / took,
		"cpu":        float64((cpu() - before).Nanoseconds()) / 1000 / done,
	})
}

// listen does what the parent asks for, until it has no more to say.
func (s *session) listen() error {
	for s.in.Scan() {
		var a Answer
		var err error
		switch order := s.in.Text(); order {
		case "count":
			a = Answer{"count": float64(s.job.waits.count())}
		case "waits":
			a, err = s.job.waits.report()
		case "heap":
			a = Answer{"heap": heap()}
		case "cpu":
			a = Answer{"cpu": cpu().Seconds()}
		default:
			err = fmt.Errorf("%q is no order", order)
		}
		if err == nil {
			err = s.out.Encode(a)
		}
		if err != nil {
			return err
		}
	}
	return s.in.Err()
}

// heap is what is live, in megabytes.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// cpu is the time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
