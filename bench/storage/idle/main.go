// Command idle opens the store in a directory and prints what that costs: the
// nanoseconds it took, the live heap and the resident memory, in bytes.
package main

import (
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/even-keel/evenkeel/storage/embedded"
)

func main() {
	start := time.Now()
	s, err := embedded.Open(embedded.Options{Dir: os.Args[1]})
	took := time.Since(start)
	if err != nil {
		log.Fatal(err)
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Println(took.Nanoseconds(), m.HeapAlloc, residentBytes())
	if err := s.Close(); err != nil {
		log.Fatal(err)
	}
}

// residentBytes is zero where there is no /proc.
func residentBytes() int {
	var size, resident int
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	if _, err := fmt.Fscan(f, &size, &resident); err != nil {
		return 0
	}
	return resident * os.Getpagesize()
}
