//go:build linux

package main

import (
	"context"

	"github.com/even-keel/evenkeel/bench/machine"
)

// evenkeel is our API server on the embedded store, without a control plane around it.
func evenkeel(program string) system {
	return system{name: "Evenkeel", start: func(ctx context.Context, dir string) (*instance, error) {
		s, err := machine.Serve(ctx, program, dir, machine.APIAlone...)
		if err != nil {
			return nil, err
		}
		return &instance{family: machine.Family{s.Child}, address: s.Address, client: s.Admin, took: s.Took}, nil
	}}
}
