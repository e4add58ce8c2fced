// Package scheduler places pods on nodes.
//
// # Deciding
//
// [Schedule] is a pure function of a [Snapshot] and a pod. It tells the node, or how
// many nodes are out of the question for which reason, and who would have to go for
// the pod to have a place. A snapshot is kept up to date with what changes, so that
// the price of a change is that of the change and not of the cluster:
//
//	s := scheduler.NewSnapshot(seed)
//	s.SetNode(node)
//	d := scheduler.Schedule(s, pod)
//	if d.Node != "" {
//		s.Place(pod, d.Node)
//	}
//
// What a node has to fulfil, what makes one better than another, the weights of the
// latter and the words of the reasons are those of kube-scheduler's default profile.
//
// # Running
//
// A [Scheduler] watches pods, nodes and namespaces, and binds the pods that name it.
// All decisions are taken by one goroutine, one after the other; writes are done by
// others, of which there are not more than [Options].Parallel. A pod that was given a
// node is in the snapshot at once, and taken out again if it could not be bound. One
// that finds no node says why in its condition PodScheduled and in an event, and
// waits until something happens that could help it.
package scheduler
