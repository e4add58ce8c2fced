// Package explore tries what faults do to a controller. Controllers fail in production
// for what tests leave out: they crash between two writes, an answer is lost, a cache is
// behind. A test with explore is about five lines:
//
//	explore.Run(t, explore.Scenario{
//		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
//		Controller: runController, // func(ctx context.Context, cfg *rest.Config) error
//		Steps:      []explore.Step{create, scale, remove},
//	})
//
// [Run] takes the steps without a fault first, and notes each write of the controller,
// each resource of which it hears, and the state after each step. From these it makes plans: one
// [Fault] at one point each, such as a crash after the second time that a pod was made.
// Each plan is a run on a server of its own, and a subtest. A controller that is right
// comes to the same states from each. What differs between any two runs does not
// count: uids, revisions, times, generated names, the order of conditions.
//
// A plan is known by the write at which its fault happens, and not by chance: the
// subtest's name repeats it.
//
// Faults are injected in the transport of the configuration that the controller is
// given, so that any controller can be tested, and any server serve. They are those of
// real clusters only: a conflict is no answer to a create, and a server may be behind
// only for those who permit it (resourceVersion=0).
//
// Runs are in bubbles of [testing/synctest], where a minute of quiet takes no time; see
// [Scenario].NoBubble for servers elsewhere.
package explore
