// Command profiled is evenkeel with the profiles of its process served at the address
// in EVENKEEL_PPROF, if that is set: for `controlplane -profile`.
package main

import (
	"context"
	"log"
	"net/http"
	_ "net/http/pprof" // served below
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/even-keel/evenkeel/cli"
)

func main() { os.Exit(run()) }

func run() int {
	if address := os.Getenv("EVENKEEL_PPROF"); address != "" {
		runtime.MemProfileRate = 128 << 10
		go func() { log.Print(http.ListenAndServe(address, nil)) }() // until the process ends
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
