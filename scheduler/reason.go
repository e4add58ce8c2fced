package scheduler

import (
	"fmt"
	"slices"
	"strings"
)

// reason is why a node is out of the question.
type reason uint8

const (
	fits reason = iota
	unschedulable
	otherName
	untolerated
	otherNode
	portsTaken
	insufficient
	spreadLabel
	spreadSkew
	notNear
	notApart
	keptApart
	reasonCount
)

// texts are kube-scheduler's; those of taints and resources name what it is about.
var texts = [reasonCount]string{
	unschedulable: "node(s) were unschedulable",
	otherName:     "node(s) didn't match the requested node name",
	otherNode:     "node(s) didn't match Pod's node affinity/selector",
	portsTaken:    "node(s) didn't have free ports for the requested pod ports",
	spreadLabel:   "node(s) didn't match pod topology spread constraints (missing required label)",
	spreadSkew:    "node(s) didn't match pod topology spread constraints",
	notNear:       "node(s) didn't match pod affinity rules",
	notApart:      "node(s) didn't match pod anti-affinity rules",
	keptApart:     "node(s) didn't satisfy existing pods anti-affinity rules",
}

const (
	noNodes       = "no nodes available to schedule pods"
	tooManyPods   = "Too many pods"
	noVictims     = "No preemption victims found for incoming pod"
	notHelpful    = "Preemption is not helpful for scheduling"
	neverPreempts = "not eligible due to preemptionPolicy=Never."
	waitsForEnd   = "not eligible due to terminating pod on the nominated node."
)

// verdict is what is wrong with a node.
type verdict struct {
	reason reason
	// hopeless says that it would be no other if no pod were on the node.
	hopeless bool
	taint    int8 // which of the node's hard ones
}

// tallied counts reasons.
type tallied struct {
	nodes [reasonCount]int
	taint map[pair]int
	lack  map[int]int // by resource; -1 is room for pods
}

func (c *tallied) add(p *podInfo, j judged) {
	c.nodes[j.reason]++
	switch j.reason {
	case untolerated:
		if c.taint == nil {
			c.taint = map[pair]int{}
		}
		t := j.node.taints.hard[j.taint]
		c.taint[pair{t.Key, t.Value}]++
	case insufficient:
		if c.lack == nil {
			c.lack = map[int]int{}
		}
		eachLack(p, j.node, func(resource int) { c.lack[resource]++ })
	}
}

// eachLack calls a function with what a node does not have enough of.
func eachLack(p *podInfo, n *nodeState, do func(resource int)) {
	if int64(len(n.pods))+1 > n.maxPods {
		do(-1)
	}
	for _, a := range p.needs {
		if a.value > n.free(a.resource) {
			do(a.resource)
		}
	}
}

// texts returns the number of nodes for each reason.
func (c *tallied) texts(r *resources) map[string]int {
	out := map[string]int{}
	for i, n := range c.nodes {
		if n > 0 && texts[i] != "" {
			out[texts[i]] = n
		}
	}
	for t, n := range c.taint {
		out[fmt.Sprintf("node(s) had untolerated taint {%s: %s}", t.key, t.value)] = n
	}
	for resource, n := range c.lack {
		text := tooManyPods
		if resource >= 0 {
			text = "Insufficient " + string(r.names[resource])
		}
		out[text] = n
	}
	return out
}

// counted says how many nodes are out of the question for which reasons.
func counted(nodes int, reasons map[string]int) string {
	list := make([]string, 0, len(reasons))
	for text, n := range reasons {
		list = append(list, fmt.Sprintf("%d %s", n, text))
	}
	slices.Sort(list)
	text := fmt.Sprintf("0/%d nodes are available:", nodes)
	if len(list) > 0 {
		text += " " + strings.Join(list, ", ") + "."
	}
	return text
}
