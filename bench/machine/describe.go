//go:build linux

package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
)

// Describe tells of the machine, and of the disk under a folder.
func Describe(dir string) (string, error) {
	fs, err := fileSystem(dir)
	if err != nil {
		return "", err
	}
	synced, err := syncTime(dir)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d cores (%s), %s of memory, Linux %s; data on %s, where a write of 4 KiB and its sync take %v",
		runtime.NumCPU(), procLine("/proc/cpuinfo", "model name"), gigabytes(procLine("/proc/meminfo", "MemTotal")),
		kernel(), fs, synced.Round(10*time.Microsecond)), nil
}

// gigabytes turns the "12345 kB" of /proc into GB.
func gigabytes(kB string) string {
	n, err := strconv.ParseFloat(strings.TrimSuffix(kB, " kB"), 64)
	if err != nil {
		return "an unknown amount"
	}
	return fmt.Sprintf("%.0f GB", n*1024/1e9)
}

// kernel is the version of the system's.
func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// LoadAverage is the machine's, as the kernel tells it.
func LoadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// syncTime is the median time of a small write and its sync on a disk.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	var took []float64
	for range 200 {
		begun := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(begun)))
	}
	return time.Duration(figure.Median(took)), nil
}

// WorkDir makes a folder on a real disk.
func WorkDir(in string) (string, error) {
	if in == "" {
		in = os.TempDir()
	}
	in, err := filepath.Abs(in)
	if err != nil {
		return "", err
	}
	if fs, err := fileSystem(in); err != nil || fs == "tmpfs" || fs == "ramfs" {
		return "", errors.Join(err, fmt.Errorf("%s is on %s, where syncing costs nothing: choose a folder on a disk with -dir", in, fs))
	}
	return os.MkdirTemp(in, "evenkeel-bench-")
}
