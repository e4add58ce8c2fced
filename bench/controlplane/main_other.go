//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "controlplane: measures by /proc, and so on Linux only")
	os.Exit(1)
}
