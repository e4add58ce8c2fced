//go:build linux

package machine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Child is a process that this one started, and ends.
type Child struct {
	// Started is when.
	Started time.Time

	name    string
	cmd     *exec.Cmd
	logFile string
	ended   chan struct{} // closed when the process has ended
}

// Start starts a program; what it says goes to dir/name.log.
func Start(dir, name, program string, args ...string) (*Child, error) {
	return start(dir, name, exec.Command(program, args...))
}

// Converse is [Start] for a program that reads what it is told and writes answers;
// its log is what it writes to standard error. When in is closed it should end.
func Converse(dir, name, program string, args ...string) (c *Child, in io.WriteCloser, out io.Reader, err error) {
	cmd := exec.Command(program, args...)
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { _ = write.Close() }()
	cmd.Stdout = write
	if c, err = start(dir, name, cmd); err != nil {
		_ = read.Close()
	}
	return c, in, read, err
}

func start(dir, name string, cmd *exec.Cmd) (*Child, error) {
	c := &Child{name: name, cmd: cmd, logFile: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(c.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	cmd.Dir, cmd.Stderr, cmd.SysProcAttr = dir, log, ownGroup()
	c.Started = time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	return c, nil
}

func (c *Child) pid() int { return c.cmd.Process.Pid }

// stopWithin is how long a server may take to stop when asked to.
const stopWithin = 90 * time.Second

// Stop asks the process to end and waits; one that does not is killed.
func (c *Child) Stop() error {
	signalGroup(c.pid(), syscall.SIGTERM)
	select {
	case <-c.ended:
		return nil
	case <-time.After(stopWithin):
		c.Kill()
		return fmt.Errorf("%s did not stop within %v", c.name, stopWithin)
	}
}

// Await waits until the process has ended by itself, and returns the CPU time that it
// used. One that does not, or that failed, is an error.
func (c *Child) Await(within time.Duration) (time.Duration, error) {
	select {
	case <-c.ended:
	case <-time.After(within):
		c.Kill()
		return 0, fmt.Errorf("%s did not end within %v", c.name, within)
	}
	state := c.cmd.ProcessState
	if !state.Success() {
		return 0, c.Failed()
	}
	return state.UserTime() + state.SystemTime(), nil
}

// Kill ends the process and all that it started, and waits for it.
func (c *Child) Kill() {
	signalGroup(c.pid(), syscall.SIGKILL)
	<-c.ended
}

// Failed is the error of a process that has ended by itself, nil while it runs.
func (c *Child) Failed() error {
	select {
	case <-c.ended:
		return fmt.Errorf("%s ended: %v; its last words:\n%s", c.name, c.cmd.ProcessState, c.LastWords())
	default:
		return nil
	}
}

// LastWords is the end of the log.
func (c *Child) LastWords() string {
	text, err := os.ReadFile(c.logFile)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// Family is all processes of one server, in the order of their start.
type Family []*Child

// Stop ends the newest first.
func (f Family) Stop() error {
	var errs []error
	for i := len(f) - 1; i >= 0; i-- {
		errs = append(errs, f[i].Stop())
	}
	return errors.Join(errs...)
}

func (f Family) Kill() {
	for _, c := range f {
		c.Kill()
	}
}

func (f Family) Failed() error {
	for _, c := range f {
		if err := c.Failed(); err != nil {
			return err
		}
	}
	return nil
}

// CPU is the CPU time of all.
func (f Family) CPU() (total time.Duration, err error) {
	for _, c := range f {
		used, err := cpuOf(c.pid())
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}

// Resident is the memory of all, in bytes.
func (f Family) Resident() (total int64, err error) {
	for _, c := range f {
		used, err := residentOf(c.pid())
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}
