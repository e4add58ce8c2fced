package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// releaseProgram gives the pages of the program itself back to the system. Most
// were only touched while it started; the others come back from the system's
// cache when they are used. What the program wrote is not among them.
func releaseProgram() error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		// 00400000-01c3f000 r-xp 00000000 fe:00 1234 /usr/bin/evenkeel
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[5] != self || strings.Contains(f[1], "w") {
			continue
		}
		var from, to uintptr
		if _, err := fmt.Sscanf(f[0], "%x-%x", &from, &to); err != nil {
			return fmt.Errorf("read %q in /proc/self/maps: %w", lines.Text(), err)
		}
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise: %w", errno)
		}
	}
	return lines.Err()
}
