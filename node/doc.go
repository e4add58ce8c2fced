// Package node is the node agent: it runs the pods that are bound to its nodes, and
// tells the server how they are.
//
// # An agent
//
// One [Agent] stands for one node or for many: all share one watch of pods, one
// queue and one loop of heartbeats, so that hundreds of simulated nodes fit into a
// process.
//
//	agent := node.New(base, told, simulated.New(simulated.Options{}), node.Options{
//		Nodes: []node.Node{{Name: "n1"}, {Name: "n2"}},
//	})
//	for _, c := range agent.Controllers() {
//		err := base.Add(c)
//	}
//	go agent.Run(ctx) // the runtime and the probes
//	err := base.Run(ctx)
//
// It registers its nodes, renews their leases every ten seconds, and writes their
// status when it changes and every five minutes. A node that somebody deletes is not
// registered again before the agent starts anew, as with other agents.
//
// # Pods
//
// What becomes of a pod is decided by a pure function: from what the pod says, what
// the runtime sees of it and what is remembered (backoffs, probes, failures to
// start), it makes what is to be done and the pod's status. Init containers run in
// order, sidecars beside, containers are restarted with a backoff, probes are asked,
// pods end in their grace period. Reasons and events are those that people know of
// the kubelet.
//
// # Runtimes
//
// A [Runtime] runs containers. There are two: node/simulated, in which pods go
// through their life without anything running, and node/process, which runs commands
// as local processes. Package node/runtimetest is the suite that both pass.
package node
