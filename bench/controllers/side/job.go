// Package side is what the two programs that are compared have in common: each runs
// controllers of one library and is told by its parent what to do. What the
// libraries have no part in is measured here, and so in the same way.
package side

import (
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/bench/controllers/foo"
)

// Task is what a controller does.
type Task string

// The tasks.
const (
	// Read: a controller of Foos that owns Deployments reads both of each key.
	Read Task = "read"
	// Write is Read, and once all have been read, each status is written.
	Write Task = "write"
	// Latency: a controller of Foos reads each that has changed.
	Latency Task = "latency"
	// Memory: a controller of Pods does nothing.
	Memory Task = "memory"
	// Foo: a controller has Deployments be what Foos want, and tells in their status.
	Foo Task = "foo"
)

// Namespace is where all objects are.
const Namespace = "bench"

// NameOf is the name of the i-th Foo.
func NameOf(i int) string {
	digits := strconv.Itoa(100_000_000 + i)
	return "foo-" + digits[1:]
}

// indexOf is the opposite of NameOf.
func indexOf(name string) int {
	n := 0
	for _, c := range name[len("foo-"):] {
		n = n*10 + int(c-'0')
	}
	return n
}

// Job is a controller that a side runs, and what it tells.
type Job struct {
	Task    Task
	Config  *rest.Config
	Objects int
	Workers int
	// Enqueue has the controller look at the i-th Foo. A side that can sets it
	// before it starts its controller.
	Enqueue func(i int)

	pass  atomic.Int64
	left  atomic.Int64 // of the pass
	seen  []atomic.Int64
	all   chan struct{} // has one when the pass is done
	waits *waits
}

func newJob(t Task, cfg *rest.Config, objects, workers int) *Job {
	j := &Job{Task: t, Config: cfg, Objects: objects, Workers: workers, seen: make([]atomic.Int64, objects), all: make(chan struct{}, 1)}
	if t == Latency {
		j.waits = newWaits()
		cfg.Wrap(j.waits.wrap)
	}
	j.begin(1)
	return j
}

// begin begins a pass: every key is to be reconciled once more.
func (j *Job) begin(pass int64) {
	j.left.Store(int64(j.Objects))
	j.pass.Store(pass)
}

// Pass is 1 until all keys have been reconciled once.
func (j *Job) Pass() int64 { return j.pass.Load() }

// Done says that the Foo of a name has been reconciled.
func (j *Job) Done(name string) {
	pass := j.pass.Load()
	if j.seen[indexOf(name)].Swap(pass) != pass {
		j.one()
	}
}

// DoneAny says that an object has been reconciled, and each is once.
func (j *Job) DoneAny() { j.one() }

func (j *Job) one() {
	if j.left.Add(-1) == 0 {
		j.all <- struct{}{}
	}
}

// Saw says that a Foo is looked at now. What there was at the beginning is not
// measured.
func (j *Job) Saw(f *foo.Foo) {
	now, measured := time.Now(), j.left.Load() <= 0
	if sent := f.Annotations[SentAt]; sent != "" {
		j.waits.saw(indexOf(f.Name), sent, now, measured)
	}
	if !measured {
		j.Done(f.Name)
	}
}
