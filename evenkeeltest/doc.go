// Package evenkeeltest runs a real API server in the process of a test: the same
// code as `evenkeel serve`, on memory, ready in tens of milliseconds, as many at
// once as there are tests.
//
//	env := evenkeeltest.Start(t, evenkeeltest.CRDs("manifests/crds"))
//	foos := client.Of[*v1alpha1.Foo](env.Conn())
//
// It ends with the test, and fails it if anything of it is left behind. There is
// no fake client: what works here works on a cluster.
//
// [Env.Apply] makes objects of manifests, [Env.Eventually] waits for what has to
// come true without polling, and [Env.Snapshot] with [Env.Restore] brings back a
// state, for tests that share a server. [Env.Restart] and [Env.Cut] are for tests
// of what happens when the server goes away.
package evenkeeltest
