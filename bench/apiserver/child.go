//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// child is a process that this one started, and ends.
type child struct {
	name    string
	cmd     *exec.Cmd
	logFile string
	started time.Time
	ended   chan struct{} // closed when the process has ended
}

// startChild starts a program; what it says goes to dir/name.log.
func startChild(dir, name, program string, args ...string) (*child, error) {
	c := &child{name: name, cmd: exec.Command(program, args...), logFile: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(c.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr, c.cmd.SysProcAttr = dir, log, log, ownGroup()
	c.started = time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// stopWithin is how long a server may take to stop when asked to.
const stopWithin = 90 * time.Second

// stop asks the process to end and waits; one that does not is killed.
func (c *child) stop() error {
	signalGroup(c.pid(), syscall.SIGTERM)
	select {
	case <-c.ended:
		return nil
	case <-time.After(stopWithin):
		c.kill()
		return fmt.Errorf("%s did not stop within %v", c.name, stopWithin)
	}
}

// kill ends the process and all that it started, and waits for it.
func (c *child) kill() {
	signalGroup(c.pid(), syscall.SIGKILL)
	<-c.ended
}

// failed is the error of a process that has ended by itself, nil while it runs.
func (c *child) failed() error {
	select {
	case <-c.ended:
		return fmt.Errorf("%s ended: %v; its last words:\n%s", c.name, c.cmd.ProcessState, c.lastWords())
	default:
		return nil
	}
}

// lastWords is the end of the log.
func (c *child) lastWords() string {
	text, err := os.ReadFile(c.logFile)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// family is all processes of one server, in the order of their start.
type family []*child

// stop ends the newest first.
func (f family) stop() error {
	var errs []error
	for i := len(f) - 1; i >= 0; i-- {
		errs = append(errs, f[i].stop())
	}
	return errors.Join(errs...)
}

func (f family) kill() {
	for _, c := range f {
		c.kill()
	}
}

func (f family) failed() error {
	for _, c := range f {
		if err := c.failed(); err != nil {
			return err
		}
	}
	return nil
}

// cpu is the CPU time of all.
func (f family) cpu() (total time.Duration, err error) {
	for _, c := range f {
		used, err := cpuOf(c.pid())
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}

// resident is the memory of all, in bytes.
func (f family) resident() (total int64, err error) {
	for _, c := range f {
		used, err := residentOf(c.pid())
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}
