package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ownGroup puts a child into its own process group, and has the kernel kill it
// should this process die without a chance to.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// signalGroup signals a child and all that it started. That they are gone
// already is fine.
func signalGroup(pid int, signal syscall.Signal) { _ = syscall.Kill(-pid, signal) }

// tick is the unit of CPU time in /proc on every Linux.
const tick = 10 * time.Millisecond

// cpuOf is the CPU time that a process has used.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return ticks(fields[11]) + ticks(fields[12]), nil // user and system
}

func ticks(field string) time.Duration {
	n, _ := strconv.ParseInt(field, 10, 64)
	return time.Duration(n) * tick
}

// CPUOfSelf is the CPU time that this process has used.
func CPUOfSelf() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// CPUOfMachine is the CPU time of all processes, and what the host took away;
// time in interrupts is left out, for it is nobody's.
func CPUOfMachine() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	return ticks(fields[1]) + ticks(fields[2]) + ticks(fields[3]) + ticks(fields[8]), nil
}

// residentOf is the resident memory of a process, in bytes.
func residentOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0, fmt.Errorf("/proc/%d/statm: %w", pid, err)
	}
	return resident * int64(os.Getpagesize()), nil
}

// fileSystem names what a folder is on.
func fileSystem(dir string) (string, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "", err
	}
	names := map[int64]string{0x01021994: "tmpfs", 0x858458f6: "ramfs", 0xef53: "ext4", 0x58465342: "xfs",
		0x9123683e: "btrfs", 0x2fc12fc1: "zfs", 0x794c7630: "overlayfs"}
	if name, ok := names[int64(s.Type)]; ok {
		return name, nil
	}
	return fmt.Sprintf("file system %#x", s.Type), nil
}

// procLine finds the value of the first "key: value" line of a file; "" if there
// is none.
func procLine(file, key string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
