package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/remote"
)

// outlives is how long output is waited for that comes from nobody known: from a
// process that left the group of one that has ended.
const outlives = time.Second

// task is a command that runs beside the process of a container: of a probe, of a
// hook, or of somebody who wants to look.
type task struct {
	of    *container
	cmd   *exec.Cmd
	ended chan struct{} // closed when its process has ended
	work  sync.WaitGroup
}

// newTask makes a command with the environment and in the folder of the container.
func (c *container) newTask(command []string) (*task, error) {
	if len(command) == 0 {
		return nil, errors.New("there is no command")
	}
	path, err := find(command[0], c.cmd.Env)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: path, Args: command, Dir: c.cmd.Dir, Env: c.cmd.Env}
	own(cmd)
	return &task{of: c, cmd: cmd, ended: make(chan struct{})}, nil
}

// find finds a program as a container does: by the PATH of its own environment.
func find(program string, env []string) (string, error) {
	if strings.ContainsRune(program, filepath.Separator) {
		return program, nil
	}
	path := ""
	for _, v := range env { // the last one counts
		if value, is := strings.CutPrefix(v, "PATH="); is {
			path = value
		}
	}
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(folder, program)); err == nil {
			return found, nil
		}
	}
	return "", &exec.Error{Name: program, Err: exec.ErrNotFound}
}

// run runs the command until it ends, or is killed because ctx or the container ended.
// Its output is all written when it returns.
func (t *task) run(ctx context.Context, s remote.Streams) error {
	start := t.startPiped
	if s.TTY {
		start = t.startTerminal
	}
	if !t.of.enter() {
		return fmt.Errorf("%s: %w", t.of.name, node.ErrUnknownContainer)
	}
	finish, err := start(s)
	if err != nil {
		t.of.guests.Done()
		return err
	}
	t.wait(ctx)
	t.of.guests.Done()
	finish()
	t.work.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if code := exitCode(t.cmd.ProcessState); code != 0 {
		return &remote.ExitError{Code: code}
	}
	return nil
}

// launch starts the process, and writes down that it runs.
func (t *task) launch() error {
	if err := t.cmd.Start(); err != nil {
		return err
	}
	pid := t.cmd.Process.Pid
	if err := writeJSON(t.state(), leftover{PID: pid, Born: born(pid)}); err != nil {
		killGroup(pid)
		_ = t.cmd.Wait() // it was killed
		return err
	}
	return nil
}

func (t *task) state() string {
	return filepath.Join(filepath.Dir(t.of.meta), fmt.Sprintf("task-%d.json", t.cmd.Process.Pid))
}

// wait waits until the process has ended, and ends the rest of its group.
func (t *task) wait(ctx context.Context) {
	over := make(chan struct{})
	t.work.Go(func() {
		select {
		case <-ctx.Done():
			killGroup(t.cmd.Process.Pid)
		case <-t.of.done:
			killGroup(t.cmd.Process.Pid)
		case <-over:
		}
	})
	_ = t.cmd.Wait() // what there is to say of it, the state says
	close(over)
	killGroup(t.cmd.Process.Pid)
	_ = os.Remove(t.state())
	close(t.ended)
}

// startPiped starts the process with a pipe for each stream. What it returns is to be
// called when the process has ended.
func (t *task) startPiped(s remote.Streams) (finish func(), err error) {
	var theirs, ours files
	defer func() {
		theirs.close() // the process has its own
		if err != nil {
			ours.close()
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	var in, out, errs *os.File
	if s.Stdin != nil {
		r, w := pipe()
		t.cmd.Stdin, in = r, w
		theirs, ours = append(theirs, r), append(ours, w)
	}
	if s.Stdout != nil {
		r, w := pipe()
		out, t.cmd.Stdout = r, w
		theirs, ours = append(theirs, w), append(ours, r)
	}
	if s.Stderr != nil {
		r, w := pipe()
		errs, t.cmd.Stderr = r, w
		theirs, ours = append(theirs, w), append(ours, r)
	}
	if err != nil {
		return nil, err
	}
	if err = t.launch(); err != nil {
		return nil, err
	}
	var outputs sync.WaitGroup
	t.input(s.Stdin, in, func() { _ = in.Close() })
	t.output(&outputs, out, s.Stdout)
	t.output(&outputs, errs, s.Stderr)
	return func() {
		stopInput(s.Stdin, in)
		for _, f := range []*os.File{out, errs} {
			hurry(f)
		}
		outputs.Wait()
		ours.close()
	}, nil
}

// endOfText is what a terminal takes for the end of its input.
const endOfText = 4

// startTerminal starts the process on a terminal of its own.
func (t *task) startTerminal(s remote.Streams) (finish func(), err error) {
	ours, theirs, err := openTerminal()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }() // the process has its own
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = theirs, theirs, theirs
	t.cmd.Env = withTerm(t.cmd.Env)
	ownTerminal(t.cmd)
	select {
	case size := <-s.Sizes:
		_ = resize(ours, size)
	default:
	}
	if err := t.launch(); err != nil {
		_ = ours.Close()
		return nil, err
	}
	var outputs sync.WaitGroup
	t.input(s.Stdin, ours, func() { _, _ = ours.Write([]byte{endOfText}) })
	t.output(&outputs, ours, s.Stdout)
	t.work.Go(func() { follow(ours, s.Sizes, t.ended) })
	return func() {
		stopInput(s.Stdin, ours)
		hurry(ours)
		outputs.Wait()
		_ = ours.Close()
	}, nil
}

// withTerm says what the terminal is like, unless the container does.
func withTerm(env []string) []string {
	return append([]string{"TERM=xterm"}, env...) // the last one counts
}

// follow gives a terminal the sizes that its user has, until done.
func follow(terminal *os.File, sizes <-chan remote.Size, done <-chan struct{}) {
	for {
		select {
		case size := <-sizes:
			_ = resize(terminal, size)
		case <-done:
			return
		}
	}
}

// input copies to the process, and calls end when there is no more.
func (t *task) input(from io.ReadCloser, to *os.File, end func()) {
	if from == nil {
		return
	}
	t.work.Go(func() {
		defer func() { _ = from.Close() }()
		if _, err := io.Copy(to, from); err == nil {
			end()
		}
	})
}

// stopInput ends what input began.
func stopInput(from io.Closer, to *os.File) {
	if from != nil {
		_ = from.Close()
		_ = to.SetWriteDeadline(time.Now())
	}
}

// output copies from the process. Without anybody who wants it, it is dropped.
func (t *task) output(all *sync.WaitGroup, from *os.File, to io.Writer) {
	if from == nil {
		return
	}
	if to == nil {
		to = io.Discard
	}
	all.Go(func() {
		if _, err := io.Copy(to, tail{from, t.ended}); err != nil {
			_, _ = io.Copy(io.Discard, tail{from, t.ended}) // the client left: the process is about to be told
		}
	})
}

// tail reads what a process writes and, once it has ended, what is left and what comes
// without a pause.
type tail struct {
	from  *os.File
	ended <-chan struct{}
}

func (t tail) Read(p []byte) (int, error) {
	select {
	case <-t.ended:
		hurry(t.from)
	default:
	}
	return t.from.Read(p)
}

// hurry has a read end soon, also one that has begun.
func hurry(f *os.File) {
	if f != nil {
		_ = f.SetReadDeadline(time.Now().Add(outlives))
	}
}

// files are closed together.
type files []*os.File

func (all files) close() {
	for _, f := range all {
		_ = f.Close() // nil is an error, too
	}
}
