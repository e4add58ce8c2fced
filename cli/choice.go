package cli

import (
	"fmt"
	"slices"
	"strings"
)

// choice is a flag that takes one of a few words.
type choice struct {
	value string
	of    []string
}

func newChoice(initial string, of ...string) choice { return choice{value: initial, of: of} }

// String and the two below make a choice a pflag.Value.
func (c *choice) String() string { return c.value }

// Type is what the help shows in place of the value.
func (c *choice) Type() string { return strings.Join(c.of, "|") }

// Set takes one of the words, nothing else.
func (c *choice) Set(word string) error {
	if !slices.Contains(c.of, word) {
		return fmt.Errorf("want one of: %s", strings.Join(c.of, ", "))
	}
	c.value = word
	return nil
}
