// Package leader has one of several processes do the work, by a Lease that they
// contend for.
//
// # Leading
//
// An [Elector] is a candidate. [Elector.Run] waits until it leads, calls the work,
// and returns when that has ended:
//
//	elector := leader.New(conn, leader.Options{Namespace: "kube-system", Name: "foo-controller"})
//	err := elector.Run(ctx, func(ctx context.Context) error {
//		return controllers.Run(ctx)
//	})
//	if errors.Is(err, leader.ErrLost) {
//		os.Exit(1) // or run again
//	}
//
// When leadership is lost, the context of the work ends. When the context of Run
// does, the lease is renewed until the work has ended, and then released, so that
// another leads at once. What may run in many processes, such as informers and
// their caches, is started outside of the work: a standby is then warm when it
// takes over.
//
// # Why there is one
//
// A leader renews its lease each [Options].RetryPeriod. It leads until
// [Options].RenewDeadline after it sent the last renewal that succeeded: it counts
// from before the request, and by its own monotonic clock, so that neither a
// request that hangs nor a clock that is set makes the time longer. Others take the
// lease when it has not changed for the LeaseDuration that it tells, which is more,
// counted by their own clocks from when they saw it, which is later. Nobody
// compares the times of two clocks; only the speeds of clocks have to agree, up to
// the ratio of the two durations. That a lease is deleted tells a leader to stop,
// and others to wait for as long as if it were there.
//
// A standby watches the lease, and polls it where it may not watch. It needs the
// verbs get, create and update for leases, and should have watch.
//
// The Lease is written as client-go writes it, and read as client-go reads it:
// candidates of both may contend for one.
//
// # Fences
//
// A process that is stopped for a while, or whose machine is suspended, cannot
// notice in time that it leads no more, and a request that is under way may arrive
// late. For that, the context of the work carries a [Fence], which names the term,
// and clients send it along with each write that is made with it, in a header:
//
//	Evenkeel-Fence: <namespace>/<name>/<uid>/<transitions>/<holder>
//
// These are of the Lease: its namespace, name and UID, its leaseTransitions in
// decimal, and its holderIdentity, escaped as an element of a URL's path
// ([net/url.PathEscape]). A server that knows the header does a write (POST, PUT,
// PATCH, DELETE) that has it only if that lease exists, has that UID, that holder
// and that number of transitions, at the revision at which the write is done.
// Otherwise it answers 409, with reason Conflict and [CauseFenced] as the reason of
// a cause, which [IsFenced] knows; a header that cannot be read is answered 400.
// Whether the lease's time is over does not matter: as long as nobody else has
// taken it, nobody else writes. Other servers ignore the header. Clients of
// client-go send it through [Transport].
//
// # The view from outside
//
// [Elector.Status] tells who leads, and since when; [Elector.MasterStatus] is the
// value of leader_election_master_status; [Elector.Check], for a liveness probe,
// tells of work that has not ended although leadership is lost.
//
// Times come from package time; test code that uses an elector under
// testing/synctest.
package leader
