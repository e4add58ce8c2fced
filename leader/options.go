package leader

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/even-keel/evenkeel/client"
)

// Options say which lease is contended for, and by whom. Name and Namespace are
// needed; the rest has defaults, which are those of client-go.
type Options struct {
	// Namespace and Name are those of the Lease. It is made if it does not exist.
	Namespace, Name string
	// Identity names this candidate; no two may have the same. The default is the
	// host's name and something random.
	Identity string

	// LeaseDuration is how long others wait, after the last sign of life of a
	// leader, until they take its place: 15 s. It is rounded up to whole seconds.
	LeaseDuration time.Duration
	// RenewDeadline is for how long a leader leads after it sent the last renewal
	// that succeeded: two thirds of LeaseDuration. What is left of LeaseDuration is
	// the time to stop in, and the tolerance for clocks that run at other speeds.
	RenewDeadline time.Duration
	// RetryPeriod is how often a lease is renewed, and looked at where it cannot be
	// watched: two fifteenths of LeaseDuration.
	RetryPeriod time.Duration

	// KeepOnStop has the lease expire, and not be released, when the work ends.
	KeepOnStop bool
	// OnNewLeader hears who leads whenever that is somebody else than before, this
	// candidate included. It is called by the goroutine that renews: it must return
	// soon.
	OnNewLeader func(identity string)
	// Logger hears of elections and failures; the default is [slog.Default].
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&o.LeaseDuration, 15*time.Second)
	set(&o.RenewDeadline, o.LeaseDuration*2/3)
	set(&o.RetryPeriod, o.LeaseDuration*2/15)
	if o.Identity == "" {
		host, _ := os.Hostname()
		o.Identity = host + "_" + rand.Text()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func (o Options) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("lease %s: %w: %s", o.key(), ErrOption, fmt.Sprintf(format, args...))
	}
	switch {
	case o.Name == "" || o.Namespace == "":
		return bad("it needs a name and a namespace")
	case o.RetryPeriod < 0 || o.RenewDeadline < 0 || o.LeaseDuration < time.Second:
		return bad("LeaseDuration %s, RenewDeadline %s and RetryPeriod %s: the first must be a second or more, and none negative",
			o.LeaseDuration, o.RenewDeadline, o.RetryPeriod)
	case o.LeaseDuration <= o.RenewDeadline:
		return bad("LeaseDuration %s must be more than RenewDeadline %s", o.LeaseDuration, o.RenewDeadline)
	case o.RenewDeadline <= o.longestPause():
		return bad("RenewDeadline %s must be more than 1.2 times RetryPeriod %s", o.RenewDeadline, o.RetryPeriod)
	}
	return nil
}

func (o Options) key() client.Key { return client.Key{Namespace: o.Namespace, Name: o.Name} }

// longestPause is the longest that is waited between two looks at the lease.
func (o Options) longestPause() time.Duration { return o.RetryPeriod * 6 / 5 }

// patience is how long one request may take: one that hangs leaves time for
// another.
func (o Options) patience() time.Duration { return o.RenewDeadline / 2 }
