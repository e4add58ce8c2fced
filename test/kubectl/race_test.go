//go:build race

package kubectl

// raced says that the race detector is on.
const raced = true
