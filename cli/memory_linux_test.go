package cli

import (
	"bufio"
	"fmt"
	"os"
	"testing"
)

func TestProgramGivesItsPagesBack(t *testing.T) {
	before := residentFile(t)
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
	if after := residentFile(t); after >= before {
		t.Errorf("%d kB of files were resident before, %d kB after", before, after)
	}
}

// residentFile is how much of mapped files is in memory.
func residentFile(t *testing.T) (kB int) {
	t.Helper()
	status, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if n, _ := fmt.Sscanf(lines.Text(), "RssFile: %d kB", &kB); n == 1 {
			return kB
		}
	}
	t.Fatal("no RssFile in /proc/self/status")
	return 0
}
