//go:build !linux

package process

import (
	"errors"
	"os"
	"os/exec"

	"github.com/even-keel/evenkeel/node/remote"
)

// Terminals are made on Linux only.

var errNoTerminals = errors.New("there are no terminals on this system")

func openTerminal() (ours, theirs *os.File, err error) { return nil, nil, errNoTerminals }

func resize(*os.File, remote.Size) error { return errNoTerminals }

func ownTerminal(*exec.Cmd) {}
