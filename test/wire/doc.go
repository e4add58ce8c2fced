// Package wire replays recorded requests against a server that should speak the
// Kubernetes wire protocol, and tells how close its answers come to those of
// kube-apiserver 1.36.3.
//
// testdata/transcripts.jsonl holds the recording, a step a line. The steps of a
// [Scenario] run in order and depend on each other through variables; scenarios
// are independent. An answer is normalised (what differs from run to run becomes
// a placeholder such as <uid>) and compared at three levels, each of which
// includes those before it: [Status], [Shape] and [Exact].
//
//	scenarios, err := wire.Load(file)
//	run := wire.NewRun(wire.Target{BaseURL: url, Client: admin, Anonymous: nobody})
//	for _, s := range scenarios {
//		results, err := run.Play(ctx, s)
//		...
//	}
//
// The test TestReplay plays all of them against our own server, or against any
// other that EVENKEEL_WIRE_URL names.
package wire
