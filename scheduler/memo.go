package scheduler

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// maxMemo bounds for how many texts it is remembered what they mean for nodes.
const maxMemo = 1024

// memo remembers by slot what selectors of nodes come to: pods that are made of one
// template ask the same. It holds until a node comes, goes or changes its labels.
type memo struct {
	wanted map[string][]int8  // 0 is not known, 1 is yes, -1 is no
	liked  map[string][]int64 // 1 more than the score, so that 0 is not known
}

func newMemo() memo { return memo{map[string][]int8{}, map[string][]int64{}} }

func (m *memo) clear() {
	clear(m.wanted)
	clear(m.liked)
}

// remembered returns what is known of a text, to be added to.
func remembered[T any](m map[string][]T, text string, nodes int) []T {
	known := m[text]
	if known == nil {
		if len(m) >= maxMemo {
			clear(m)
		}
		known = make([]T, nodes)
		m[text] = known
	}
	return known
}

// wantsText tells what pods want of nodes apart, and likesText what they like.
func wantsText(spec *corev1.PodSpec) string {
	var required *corev1.NodeSelector
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return jsonText(spec.NodeSelector, required)
}

func likesText(terms []corev1.PreferredSchedulingTerm) string { return jsonText(terms) }

func jsonText(values ...any) string {
	text, err := json.Marshal(values)
	if err != nil {
		panic("scheduler: a selector cannot be written as JSON: " + err.Error()) // its types always can
	}
	return string(text)
}
