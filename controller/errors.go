package controller

import "errors"

var (
	// ErrTerminal is what an error is that is not retried: see [Terminal].
	ErrTerminal = errors.New("terminal error")
	// ErrOption says that the options of a controller do not fit together.
	ErrOption = errors.New("bad option")
	// ErrOwned says that an object is not one's own: it has another controller, or
	// none and exists.
	ErrOwned = errors.New("the object belongs to another")
	// ErrOwnerScope says that an object cannot have an owner of that scope.
	ErrOwnerScope = errors.New("the owner is of a scope that cannot own the object")
	// ErrOwnerGone says that an owner cannot adopt, because it is being deleted.
	ErrOwnerGone = errors.New("the owner is gone or about to be")
	// ErrPanic says that a reconciler panicked.
	ErrPanic = errors.New("panic")
)

// terminal is an error that is not retried.
type terminal struct{ error }

func (t terminal) Unwrap() []error { return []error{ErrTerminal, t.error} }

// Terminal says of an error that trying again is of no use: it is logged and
// counted, and the key waits for its next event. Terminal(nil) is nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return terminal{err}
}
