package leader_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// The tests run our server, whole, in a bubble of synctest: over a network in
// memory, where time passes when all wait. An hour of elections takes no time, and
// a goroutine that is left behind fails the test.

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// inBubble runs a test with a server of its own.
func inBubble(t *testing.T, test func(t *testing.T, c *evenkeeltest.Env), opts ...evenkeeltest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, evenkeeltest.Start(t, append(opts, evenkeeltest.Bubble())...)) })
}

// connect returns a connection, through a transport if one is given.
func connect(s *evenkeeltest.Server, through func(http.RoundTripper) http.RoundTripper) (*client.Conn, error) {
	cfg := s.Config()
	cfg.ContentType = "application/json" // which roads can read
	cfg.Wrap(through)
	return client.Connect(cfg)
}
