// Package evenkeeltest runs a real API server in the process of a test: the same
// code as `evenkeel serve`, on memory, ready in tens of milliseconds, as many at
// once as there are tests.
//
//	env := evenkeeltest.Start(t, evenkeeltest.CRDs("manifests/crds"))
//	env.Run(runController)
//	env.ApplyFiles("samples/foo.yaml")
//	evenkeeltest.Eventually(env, key, evenkeeltest.Condition[*v1alpha1.Foo]("Ready", "True"))
//
// It ends with the test, and [Env.Run] ends what the test runs before. There is no
// fake client: what works here works on a cluster.
//
// [Env.Apply] makes objects of manifests, [Eventually] waits for what has to come
// true without polling, and [Env.Snapshot] with [Env.Restore] brings back a state,
// for tests that share a server. [Env.Restart], [Server.Stop], [Server.Cut] and
// [Server.Compact] are for tests of what happens when the server goes away,
// [Server.InFront] for those of what happens when it answers otherwise.
//
// With [Bubble] all of it runs in a bubble of [testing/synctest], where hours of a
// controller take no time. [Open] starts a server without a test. [Main] and
// [MainWith] are for TestMain: they find goroutines that tests left behind.
package evenkeeltest
