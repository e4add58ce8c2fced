package events_test

import (
	"testing"
	"testing/synctest"

	"github.com/even-keel/evenkeel/evenkeeltest"
)

// The tests run our server, whole, in a bubble of synctest: over a network in
// memory, where time passes when all wait. An hour of events takes no time, and
// a goroutine that is left behind fails the test.

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// inBubble runs a test with a server of its own.
func inBubble(t *testing.T, test func(t *testing.T, c *evenkeeltest.Env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, evenkeeltest.Start(t, evenkeeltest.Bubble())) })
}
