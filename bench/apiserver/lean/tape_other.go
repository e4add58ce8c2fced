//go:build !linux

package lean

import "errors"

// Tape is for Linux.
type Tape struct{}

func (t *Tape) play([]byte) (int, error)  { return 0, errors.ErrUnsupported }
func (t *Tape) write([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (t *Tape) close() error              { return errors.ErrUnsupported }
