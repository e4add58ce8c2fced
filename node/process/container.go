package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/node"
)

// The variables that containers have besides their own.
const (
	rootVariable        = "EVENKEEL_ROOT"
	terminationVariable = "EVENKEEL_TERMINATION_LOG"
	volumeVariable      = "EVENKEEL_VOLUME_"
)

// container is a process, or was.
type container struct {
	name    string
	id      string
	attempt int32
	spec    *corev1.Container
	address string
	root    string // its own folder
	meta    string // where its state is kept
	cmd     *exec.Cmd
	logs    *logFile
	last    *node.Exit
	done    chan struct{}  // closed when it has ended
	guests  sync.WaitGroup // one for each command beside it

	// stdin is where its process reads from, of somebody else; nil if it does not. A
	// terminal is the output too.
	stdin    *os.File
	terminal bool
	turn     chan struct{} // held by who writes to stdin

	mu        sync.Mutex
	startedAt time.Time
	stopBy    time.Time
	killer    *time.Timer
	exit      *node.Exit
}

// newContainer makes all that a process needs.
func (r *Runtime) newContainer(p *pod, c node.Container) (*container, error) {
	folder := filepath.Join(p.folder, "containers", c.Spec.Name)
	n := &container{
		name: c.Spec.Name, id: fmt.Sprintf("%s-%s-%d", p.id.UID, c.Spec.Name, c.Attempt), attempt: c.Attempt, spec: c.Spec,
		address: r.options.Address, root: filepath.Join(folder, "root"),
		meta: filepath.Join(folder, stateFile), done: make(chan struct{}), turn: make(chan struct{}, 1),
	}
	// What the last attempt left is not this one's. Of volumes, there are only links.
	if err := errors.Join(os.RemoveAll(n.terminationLog()), os.RemoveAll(n.root)); err != nil {
		return nil, err
	}
	mounts, err := linkMounts(n.root, c.Spec.VolumeMounts, p.volumes)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(n.root, filepath.FromSlash(c.Spec.WorkingDir)) // may be in a volume
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	n.logs = newLogFile(folder, c.Attempt, r.options.LogBytes)
	n.cmd = &exec.Cmd{Args: slices.Concat(c.Command, c.Args), Dir: dir}
	n.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + n.root, "HOSTNAME=" + p.hostname,
		rootVariable + "=" + n.root, terminationVariable + "=" + n.terminationLog(),
	}, mounts...)
	for _, v := range c.Env {
		n.cmd.Env = append(n.cmd.Env, v.Name+"="+v.Value)
	}
	own(n.cmd)
	n.cmd.Path, err = find(c.Command[0], n.cmd.Env)
	return n, err
}

func (c *container) terminationLog() string {
	return filepath.Join(filepath.Dir(c.root), "termination-log")
}

// start starts the process. Its output goes to the log.
func (c *container) start() error {
	if err := c.logs.open(); err != nil {
		return err
	}
	err := c.run()
	if err != nil {
		c.logs.close(0)
		if c.stdin != nil {
			_ = c.stdin.Close()
		}
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startedAt = time.Now()
	return nil
}

func (c *container) run() (err error) {
	var theirs files
	defer func() { theirs.close() }() // the process has its own
	if c.spec.TTY {
		theirs, err = c.useTerminal()
	} else {
		theirs, err = c.usePipes()
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return err
	}
	pid := c.cmd.Process.Pid
	if err := writeJSON(c.meta, leftover{PID: pid, Born: born(pid)}); err != nil {
		killGroup(pid)
		_ = c.cmd.Wait() // it was killed
		return err
	}
	return nil
}

// usePipes gives the process a pipe for each stream, and returns what is to be closed
// once it has begun.
func (c *container) usePipes() (theirs files, err error) {
	out, err := c.logs.pipe("stdout")
	if err != nil {
		return nil, err
	}
	theirs, c.cmd.Stdout = files{out}, out
	errs, err := c.logs.pipe("stderr")
	if err != nil {
		return theirs, err
	}
	theirs, c.cmd.Stderr = append(theirs, errs), errs
	if c.spec.Stdin {
		var in *os.File
		if in, c.stdin, err = os.Pipe(); err != nil {
			return theirs, err
		}
		theirs, c.cmd.Stdin = append(theirs, in), in
	}
	return theirs, nil
}

// useTerminal gives the process a terminal of its own, likewise.
func (c *container) useTerminal() (theirs files, err error) {
	ours, slave, err := openTerminal()
	if err != nil {
		return nil, err
	}
	c.stdin, c.terminal = ours, true
	c.logs.take(ours, "stdout")
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	c.cmd.Env = withTerm(c.cmd.Env)
	ownTerminal(c.cmd)
	return files{slave}, nil
}

// enter has a command run beside the process, unless that has ended. Call guests.Done
// when the command has.
func (c *container) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exit != nil {
		return false
	}
	c.guests.Add(1)
	return true
}

// wait waits until the process has ended, and ends the rest of its group.
func (c *container) wait() {
	_ = c.cmd.Wait() // what there is to say of it, the state says
	killGroup(c.cmd.Process.Pid)
	c.logs.close(time.Second)
	if c.stdin != nil {
		_ = c.stdin.Close()
	}
	_ = os.Remove(c.meta)
	exit := &node.Exit{ID: c.id, Code: exitCode(c.cmd.ProcessState), FinishedAt: time.Now()}
	exit.Message = c.message(exit.Code)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killer != nil {
		c.killer.Stop()
	}
	exit.StartedAt, c.exit = c.startedAt, exit
	close(c.done)
}

// maxMessage is how long the message of an end may be, and maxTail how much of the
// log may stand for it.
const (
	maxMessage = 4096
	maxTail    = 2048
	tailLines  = 80
)

// message is what a container says about its end.
func (c *container) message(code int32) string {
	if text := lastOf(c.terminationLog(), maxMessage); text != "" {
		return text
	}
	if code == 0 || c.spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return ""
	}
	var tail strings.Builder
	_ = c.logs.read(context.Background(), node.LogOptions{Tail: tailLines}, &tail) // no log, no message
	text := tail.String()
	return text[max(0, len(text)-maxTail):]
}

// lastOf is the end of a file, "" if there is none.
func lastOf(path string, limit int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > limit {
		_, _ = f.Seek(-limit, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(f, limit))
	return string(text)
}

// state is how the container is now.
func (c *container) state() node.ContainerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := node.ContainerState{
		Name: c.name, ID: c.id, Attempt: c.attempt, Phase: node.Running,
		StartedAt: c.startedAt, StopBy: c.stopBy, Exit: c.exit, Last: c.last,
	}
	if c.exit != nil {
		s.Phase = node.Exited
	}
	return s
}

// stop has the process end: before calls what is to come before the signal, and then
// the signal; nil is the signal at once. When the grace period is over, the group is
// killed.
func (c *container) stop(grace time.Duration, before func(signal func())) {
	c.mu.Lock()
	by := time.Now().Add(grace)
	first := c.stopBy.IsZero()
	if c.exit != nil || !first && !by.Before(c.stopBy) {
		c.mu.Unlock()
		return
	}
	c.stopBy = by
	if c.killer == nil {
		c.killer = time.AfterFunc(grace, c.kill)
	} else {
		c.killer.Reset(grace)
	}
	c.mu.Unlock()
	switch {
	case !first:
	case before != nil:
		before(c.terminate)
	default:
		c.terminate()
	}
}

// terminate sends the signal by which a container is told to end.
func (c *container) terminate() { c.signal(stopSignal(c.spec.Lifecycle)) }

func (c *container) kill() { c.signal(killSignal) }

func (c *container) signal(s os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exit == nil {
		signalGroup(c.cmd.Process.Pid, s)
	}
}

// linkMounts puts links to volumes where a container mounts them, and returns the
// variables that tell of them.
func linkMounts(root string, mounts []corev1.VolumeMount, volumes map[string]string) ([]string, error) {
	var variables []string
	for _, m := range mounts {
		to, known := volumes[m.Name]
		if !known {
			return nil, fmt.Errorf("volume %q is not there", m.Name)
		}
		variables = append(variables, volumeVariable+variableName(m.Name)+"="+to)
		if m.SubPath != "" {
			to = filepath.Join(to, filepath.FromSlash(filepath.Clean("/"+m.SubPath)))
		}
		if err := link(to, filepath.Join(root, filepath.FromSlash(filepath.Clean("/"+m.MountPath)))); err != nil {
			return nil, fmt.Errorf("mount %q at %s: %w", m.Name, m.MountPath, err)
		}
	}
	return variables, nil
}

// link makes a symbolic link, in the place of one that is there.
func link(to, at string) error {
	if is, err := os.Readlink(at); err == nil && is == to {
		return nil
	} else if err == nil {
		if err := os.Remove(at); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.Symlink(to, at)
}

// variableName is a name as variables have them: MY_VOLUME of my-volume.
func variableName(name string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// exitCode is that of a process; 128 and the signal for one that was killed.
func exitCode(s *os.ProcessState) int32 {
	if n := signalOf(s); n > 0 {
		return 128 + n
	}
	return int32(max(s.ExitCode(), 0))
}
