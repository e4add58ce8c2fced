package scheduler

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	selectionop "k8s.io/apimachinery/pkg/selection"
)

// pair is a label.
type pair struct{ key, value string }

// selection says which pods are meant: those that all of its parts select.
type selection struct {
	parts []part
	// text tells selections apart that select different pods.
	text string
	// label is one that all pods it selects have, if it is known that there is one.
	label pair
	// byNamespace says that it depends on the labels of namespaces.
	byNamespace bool
}

// part selects pods by their labels, in namespaces by name or by label.
type part struct {
	namespaces []string
	namespace  labels.Selector // nil selects none
	pods       labels.Selector
}

func newSelection(parts ...part) *selection {
	s := &selection{parts: parts}
	var text strings.Builder
	for i := range parts {
		p := &parts[i]
		slices.Sort(p.namespaces)
		text.WriteString(strings.Join(p.namespaces, ","))
		text.WriteByte('/')
		if p.namespace != nil {
			s.byNamespace = s.byNamespace || !p.namespace.Empty()
			text.WriteString("{" + p.namespace.String() + "}")
		}
		text.WriteByte('/')
		text.WriteString(selectorText(p.pods))
		text.WriteByte(';')
		if s.label == (pair{}) {
			s.label = labelOf(p.pods)
		}
	}
	s.text = text.String()
	return s
}

// selectorText tells a selector of everything from one of nothing.
func selectorText(s labels.Selector) string {
	if _, selectable := s.Requirements(); !selectable {
		return "!"
	}
	return s.String()
}

// labelOf returns a label that all that is selected have.
func labelOf(s labels.Selector) pair {
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selectionop.In, selectionop.Equals, selectionop.DoubleEquals:
			if v := r.Values(); v.Len() == 1 {
				return pair{r.Key(), v.UnsortedList()[0]}
			}
		}
	}
	return pair{}
}

// selects reports whether a pod is meant.
func (sel *selection) selects(s *Snapshot, p *podInfo) bool {
	for i := range sel.parts {
		if !sel.parts[i].selects(s, p) {
			return false
		}
	}
	return true
}

func (t *part) selects(s *Snapshot, p *podInfo) bool {
	if !slices.Contains(t.namespaces, p.pod.Namespace) &&
		(t.namespace == nil || !t.namespace.Matches(s.namespaces[p.pod.Namespace])) {
		return false
	}
	return t.pods.Matches(labels.Set(p.pod.Labels))
}

// selectorOf reads a selector as the API means it: nil selects nothing, and one that
// cannot be read neither.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}

// term is that pods are to be in, or not in, the domain of others.
type term struct {
	sel      *selection
	topology string
}

// readTerm reads a term of a pod in a namespace.
func readTerm(t *corev1.PodAffinityTerm, namespace string) (part, string) {
	p := part{namespaces: slices.Clone(t.Namespaces), pods: selectorOf(t.LabelSelector)}
	if t.NamespaceSelector != nil {
		p.namespace = selectorOf(t.NamespaceSelector)
	}
	if len(p.namespaces) == 0 && p.namespace == nil {
		p.namespaces = []string{namespace}
	}
	return p, t.TopologyKey
}

// tally counts by node the pods of a selection.
type tally struct {
	sel *selection
	all []int32 // by slot
	// live are those that are not about to end.
	live []int32
	used uint64
}

func (t *tally) add(slot int32, p *podInfo, n int32) {
	t.all = grown(t.all, slot)
	t.live = grown(t.live, slot)
	t.all[slot] += n
	if !p.terminating {
		t.live[slot] += n
	}
}

// maxTallies bounds how many selections are counted. Others are counted anew when
// they are asked for.
const maxTallies = 4096

// tallies are the selections that are counted, which are those that were asked for.
type tallies struct {
	byText  map[string]*tally
	byLabel map[pair][]*tally // by a label that all selected pods have, or none
	uses    uint64
}

func newTallies() tallies {
	return tallies{byText: map[string]*tally{}, byLabel: map[pair][]*tally{}}
}

// about calls a function with the tallies that select a pod.
func (t *tallies) about(s *Snapshot, p *podInfo, do func(*tally)) {
	filed(t.byLabel, p, func(c *tally) {
		if c.sel.selects(s, p) {
			do(c)
		}
	})
}

// filed calls a function with what is filed under a label of a pod, or under none.
func filed[T any](byLabel map[pair][]T, p *podInfo, do func(T)) {
	for _, t := range byLabel[pair{}] {
		do(t)
	}
	for k, v := range p.pod.Labels {
		for _, t := range byLabel[pair{k, v}] {
			do(t)
		}
	}
}

// count returns how many pods of a selection there are by node.
func (s *Snapshot) count(sel *selection) *tally {
	t := &s.tallies
	t.uses++
	c := t.byText[sel.text]
	if c == nil {
		if len(t.byText) >= maxTallies {
			t.keep(func(c *tally) bool { return c.used > t.uses-maxTallies/2 })
		}
		c = s.newTally(sel)
	}
	c.used = t.uses
	c.all, c.live = grown(c.all, int32(len(s.nodes)-1)), grown(c.live, int32(len(s.nodes)-1))
	return c
}

func (s *Snapshot) newTally(sel *selection) *tally {
	c := &tally{sel: sel, all: make([]int32, len(s.nodes)), live: make([]int32, len(s.nodes))}
	for _, n := range s.nodes {
		if n == nil {
			continue
		}
		for _, p := range n.pods {
			if sel.selects(s, p) {
				c.add(n.slot, p, 1)
			}
		}
	}
	s.tallies.byText[sel.text] = c
	s.tallies.byLabel[sel.label] = append(s.tallies.byLabel[sel.label], c)
	return c
}

// keep drops all others.
func (t *tallies) keep(which func(*tally) bool) {
	clear(t.byLabel)
	for text, c := range t.byText {
		if !which(c) {
			delete(t.byText, text)
			continue
		}
		t.byLabel[c.sel.label] = append(t.byLabel[c.sel.label], c)
	}
}

// grown returns a slice that has a place for a slot.
func grown[T any](s []T, slot int32) []T {
	if n := int(slot) + 1 - len(s); n > 0 {
		s = append(s, make([]T, n)...)
	}
	return s
}
