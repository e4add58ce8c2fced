// Package process is a runtime that runs the commands of containers as processes of
// this machine.
//
// There is no isolation: processes have the rights, the network, the file system and
// the process IDs of the agent. What is promised, and what is not:
//
//   - Images are ignored. A container needs a command; without one it does not start.
//   - Each container has a folder of its own, $EVENKEEL_ROOT. It is the working
//     directory; a workingDir is a folder below it. A restart begins with an empty one.
//   - Volumes are folders. Where a container mounts one at /etc/app, there is a
//     symbolic link to it at $EVENKEEL_ROOT/etc/app, and $EVENKEEL_VOLUME_<NAME> is
//     its path. Nothing is at /etc/app. readOnly and sizes are not enforced.
//   - The environment is that of the container, and PATH, HOME and HOSTNAME.
//   - Standard output and error are kept in files, of the present and of the previous
//     container, each bounded.
//   - A process is the leader of a process group. When it ends, the rest of the group
//     is killed. Processes that leave the group are not known.
//   - Pods have the address of the machine, so that two cannot listen on one port.
//   - The message of a container's end is what it wrote to
//     $EVENKEEL_TERMINATION_LOG.
//   - Users, security contexts, resources and devices are ignored.
//   - Commands that people run in a container are processes beside its own, with its
//     environment. To connect to a port of a pod is to connect to this machine's.
//
// All processes end with the agent. What is left of one that was killed is killed
// when the next opens the same folder; its containers are started anew.
package process

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/node"
)

// The defaults of [Options].
const (
	DefaultLogBytes = 10 << 20
	DefaultGrace    = 5 * time.Second
	DefaultMaxPods  = 110
)

// ErrClosed says that the runtime ends, and starts nothing any more.
var ErrClosed = errors.New("the runtime ends")

// Options say how a runtime works. Folder is needed.
type Options struct {
	// Folder is where pods have their files. One runtime uses it at a time.
	Folder string
	// Address is that of the machine and of all pods. The default is the first that
	// others can reach, or 127.0.0.1.
	Address string
	// LogBytes is when a log file is put aside for a new one; the one before is kept.
	LogBytes int64
	// Grace is how long processes have when the agent ends.
	Grace time.Duration
	// MaxPods is how many pods the node says it has room for.
	MaxPods int64
	// Port is what the node says it serves logs at; 0 is nowhere.
	Port    int32
	Version string
	Logger  *slog.Logger
}

// Runtime is a [node.Runtime] of local processes. Make one with [Open].
type Runtime struct {
	options Options
	log     *slog.Logger
	work    sync.WaitGroup // one for each process that is waited for

	mu      sync.Mutex
	closed  bool
	changed func(node.PodID)
	pods    map[node.PodID]*pod
}

// Open returns a runtime with its folder, and kills what is left of one that did not
// end in order.
func Open(o Options) (*Runtime, error) {
	o.LogBytes = cmp.Or(o.LogBytes, DefaultLogBytes)
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	o.MaxPods = cmp.Or(o.MaxPods, DefaultMaxPods)
	o.Version = cmp.Or(o.Version, "v1.37.0-evenkeel")
	o.Address = cmp.Or(o.Address, ownAddress())
	r := &Runtime{options: o, log: cmp.Or(o.Logger, slog.Default()), pods: map[node.PodID]*pod{}}
	folder, err := filepath.Abs(o.Folder)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Folder, err)
	}
	r.options.Folder = folder
	if err := os.MkdirAll(r.podsFolder(), 0o750); err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Folder, err)
	}
	if err := r.findLeftovers(); err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Folder, err)
	}
	return r, nil
}

func (r *Runtime) podsFolder() string { return filepath.Join(r.options.Folder, "pods") }

// Name is "process".
func (*Runtime) Name() string { return "process" }

// Files is true.
func (*Runtime) Files() bool { return true }

// Run waits until ctx ends, and then ends all processes.
func (r *Runtime) Run(ctx context.Context, changed func(node.PodID)) error {
	r.mu.Lock()
	r.changed = changed
	r.mu.Unlock()
	<-ctx.Done()
	for _, c := range r.close() {
		c.stop(r.options.Grace, nil)
	}
	r.work.Wait()
	return nil
}

// close takes no more containers, and returns those that run.
func (r *Runtime) close() []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	var out []*container
	for _, p := range r.pods {
		for _, c := range p.containers {
			out = append(out, c)
		}
	}
	return out
}

func (r *Runtime) tell(id node.PodID) {
	r.mu.Lock()
	changed := r.changed
	r.mu.Unlock()
	if changed != nil {
		changed(id)
	}
}

// Pods are those that have a folder.
func (r *Runtime) Pods() []node.PodID {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]node.PodID, 0, len(r.pods))
	for id := range r.pods {
		out = append(out, id)
	}
	return out
}

// pod is a pod that has a folder.
type pod struct {
	id         node.PodID
	folder     string
	hostname   string
	volumes    map[string]string // the folder, or file, of each by its name
	containers map[string]*container
}

func (r *Runtime) find(id node.PodID) *pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[id]
}

// running returns a container that runs.
func (r *Runtime) running(id node.PodID, name string) (*container, error) {
	p := r.find(id)
	if p == nil {
		return nil, fmt.Errorf("%s: %w", id.Key, node.ErrUnknownPod)
	}
	r.mu.Lock()
	c := p.containers[name]
	r.mu.Unlock()
	if c == nil || c.state().Phase != node.Running {
		return nil, fmt.Errorf("%s of %s: %w", name, id.Key, node.ErrUnknownContainer)
	}
	return c, nil
}

// Prepare makes the folder of a pod and its volumes.
func (r *Runtime) Prepare(_ context.Context, p node.Pod) error {
	now := r.find(p.ID)
	if now == nil {
		now = &pod{id: p.ID, folder: filepath.Join(r.podsFolder(), string(p.ID.UID)), containers: map[string]*container{}}
	}
	if err := os.MkdirAll(now.folder, 0o750); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(now.folder, podFile), p.ID); err != nil {
		return err
	}
	volumes, err := makeVolumes(filepath.Join(now.folder, "volumes"), p.Volumes)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now.volumes, now.hostname = volumes, cmp.Or(p.Object.Spec.Hostname, p.Object.Name)
	r.pods[p.ID] = now
	return nil
}

// Observe tells how the processes of a pod are.
func (r *Runtime) Observe(id node.PodID) (node.Observed, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[id]
	if p == nil {
		return node.Observed{}, false
	}
	out := node.Observed{IPs: []string{r.options.Address}}
	for _, c := range p.containers {
		out.Containers = append(out.Containers, c.state())
	}
	return out, true
}

// Start starts the process of a container, and runs its postStart hook.
func (r *Runtime) Start(ctx context.Context, id node.PodID, c node.Container) error {
	p := r.find(id)
	if p == nil {
		return fmt.Errorf("start %s of %s: %w", c.Spec.Name, id.Key, node.ErrUnknownPod)
	}
	if len(c.Command) == 0 {
		return &node.Failure{Reason: node.ReasonCreate, Message: fmt.Sprintf("the process runtime runs no images: container %q needs a command", c.Spec.Name)}
	}
	next, err := r.newContainer(p, c)
	if errors.Is(err, exec.ErrNotFound) {
		return &node.Failure{Reason: node.ReasonRun, Message: err.Error()}
	}
	if err != nil {
		return &node.Failure{Reason: node.ReasonCreate, Message: err.Error()}
	}
	if err := r.launch(p, next); err != nil {
		return err
	}
	if l := c.Spec.Lifecycle; l != nil && l.PostStart != nil {
		if err := next.hook(ctx, l.PostStart); err != nil {
			next.stop(0, nil)
			return &node.Failure{Reason: "PostStartHookError", Message: err.Error()}
		}
	}
	return nil
}

// launch starts the process and puts it into its pod, unless the runtime ends.
func (r *Runtime) launch(p *pod, next *container) error {
	r.mu.Lock()
	old, closed := p.containers[next.name], r.closed
	if !closed {
		r.work.Add(1)
	}
	r.mu.Unlock()
	if closed {
		return ErrClosed
	}
	if old != nil {
		next.last = old.state().Exit
	}
	if err := next.start(); err != nil {
		r.work.Done()
		return &node.Failure{Reason: node.ReasonRun, Message: err.Error()}
	}
	go func() {
		defer r.work.Done()
		next.wait()
		r.tell(p.id)
		next.guests.Wait()
	}()
	r.mu.Lock()
	p.containers[next.name], closed = next, r.closed
	r.mu.Unlock()
	if closed {
		next.stop(0, nil) // it was not there when the others were told
	}
	return nil
}

// Stop has a container end: its preStop hook, a signal, and a kill when time is up.
func (r *Runtime) Stop(id node.PodID, name string, s node.Stop) {
	c, err := r.running(id, name)
	if err != nil {
		return
	}
	var hook *corev1.LifecycleHandler
	if l := c.spec.Lifecycle; l != nil {
		hook = l.PreStop
	}
	c.stop(s.Grace, func(run func()) {
		if hook == nil {
			run()
			return
		}
		r.work.Go(func() {
			within, cancel := context.WithTimeout(context.Background(), s.Grace)
			defer cancel()
			if err := c.hook(within, hook); err != nil {
				r.log.Warn("a preStop hook failed", "pod", id.Key, "container", name, "error", err)
			}
			run()
		})
	})
}

// Remove kills what runs of a pod, and removes its folder.
func (r *Runtime) Remove(_ context.Context, id node.PodID) error {
	p := r.find(id)
	if p == nil {
		return nil
	}
	r.mu.Lock()
	var all []*container
	for _, c := range p.containers {
		all = append(all, c)
	}
	r.mu.Unlock()
	for _, c := range all {
		c.stop(0, nil)
		<-c.done
		c.guests.Wait()
	}
	if err := os.RemoveAll(p.folder); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, id)
	return nil
}

// podFile is where a pod's folder says whose it is.
const podFile = "pod.json"

func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFile(path, data, 0o640)
}

// writeFile replaces a file at once.
func writeFile(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	next := path + ".evenkeel-new"
	if err := os.WriteFile(next, data, mode); err != nil {
		return err
	}
	if err := os.Chmod(next, mode); err != nil {
		return err
	}
	return os.Rename(next, path)
}
