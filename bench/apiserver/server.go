//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/even-keel/evenkeel/bench/machine"
)

// system is a server that can be started.
type system struct {
	name string
	// start starts it on a folder, which may hold the data of an earlier start,
	// and returns once it is ready. Who calls it ends the processes.
	start func(ctx context.Context, dir string) (*instance, error)
}

// instance is a server that runs.
type instance struct {
	family  machine.Family
	address string
	client  *tls.Config // with the identity of an administrator
	took    time.Duration
}
