package machine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Halves are the processors of the machine in two parts; both are all of them if there
// is one only.
func Halves() (lower, upper []int) {
	n := runtime.NumCPU()
	for i := range n {
		if i < n/2 || n == 1 {
			lower = append(lower, i)
		}
		if i >= n/2 {
			upper = append(upper, i)
		}
	}
	return lower, upper
}

// Pin has all threads of a child, and those that they start, run on some processors.
func (c *Child) Pin(processors []int) error { return pin(c.pid(), processors) }

// PinSelf is Pin for this process.
func PinSelf(processors []int) error { return pin(os.Getpid(), processors) }

func pin(pid int, processors []int) error {
	var set unix.CPUSet
	for _, p := range processors {
		set.Set(p)
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return fmt.Errorf("pin %d: %w", pid, err)
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return fmt.Errorf("pin %d: %w", pid, err)
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("pin thread %d of %d to %v: %w", id, pid, processors, err)
		}
	}
	return nil
}
