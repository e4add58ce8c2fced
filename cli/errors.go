package cli

import (
	"fmt"
	"strings"
)

// failure marks an error of a command that was called rightly.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// exitCode is the code of a program that was run in our place, and that has
// said itself what went wrong.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// nextStep is an error that knows what its reader can do now.
type nextStep struct {
	error
	next string
}

func (n nextStep) Unwrap() error { return n.error }

// oneBlock drops the blank lines that cobra puts around suggestions.
func oneBlock(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n\n", "\n")
}
