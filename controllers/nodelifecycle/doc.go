// Package nodelifecycle says of nodes that have fallen silent that nobody knows how
// they are, and keeps pods from nodes that cannot have them.
//
// It has two controllers. One looks at all nodes every few seconds: those whose lease
// and status have not been renewed for a while get conditions that are unknown, and
// nodes that are not ready get taints by which their pods are evicted (see
// controllers/tainteviction). That is done for one node of a zone after another, more
// slowly if much of a zone is not ready, and not at all if no node is: then it is
// rather this program that is cut off. What it decides follows from what it sees and
// from what it remembers of its last look; decide is pure.
//
// The other looks at one node when it changes: it has taints that keep new pods away
// follow the conditions, and says of the pods on a silent node that they are not ready.
package nodelifecycle
