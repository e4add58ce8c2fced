package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// releaseProgram gives the pages of the program itself back to the system. Most
// were only touched while it started; the others come back from the system's
// cache when they are used, and no more than these: a large page would bring 2 MB.
func releaseProgram() error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer smaps.Close()
	var from, to uintptr // of the program's mapping that is being read about
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		switch {
		case len(f) >= 6 && f[5] == self && !strings.Contains(f[1], "w"):
			// 00400000-01c3f000 r-xp 00000000 fe:00 1234 /usr/bin/evenkeel
			if _, err := fmt.Sscanf(f[0], "%x-%x", &from, &to); err != nil {
				return fmt.Errorf("read %q in /proc/self/smaps: %w", lines.Text(), err)
			}
		case len(f) >= 5:
			from, to = 0, 0
		// What the linker wrote before it made the mapping read-only would be lost.
		case len(f) >= 2 && f[0] == "Anonymous:" && f[1] == "0" && to > from:
			if err := release(from, to); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// release gives pages back. A kernel without large pages need not be told of them.
func release(from, to uintptr) error {
	if err := advise(from, to, syscall.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return advise(from, to, syscall.MADV_DONTNEED)
}

func advise(from, to uintptr, what int) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, from, to-from, uintptr(what)); errno != 0 {
		return fmt.Errorf("madvise: %w", errno)
	}
	return nil
}
