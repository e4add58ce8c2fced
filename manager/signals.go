package manager

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a context that ends at the first interrupt or SIGTERM. At the
// second, the program exits at once, with status 1.
func Signals() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() { // as long as the program
		<-c
		cancel()
		<-c
		os.Exit(1)
	}()
	return ctx
}
