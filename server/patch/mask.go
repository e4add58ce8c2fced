package patch

import "strings"

// mask leaves fields out of a field set. A nil mask leaves out nothing.
type mask struct {
	self  bool // the field itself is not counted; what is below it is
	whole bool // neither is counted
	below map[string]*mask
}

func (m *mask) of(name string) *mask {
	if m == nil {
		return nil
	}
	return m.below[name]
}

// add puts the field at a path into the mask, whole or only itself.
func (m *mask) add(whole bool, path ...string) {
	for _, name := range path {
		if m.below == nil {
			m.below = map[string]*mask{}
		}
		if m.below[name] == nil {
			m.below[name] = &mask{}
		}
		m = m.below[name]
	}
	m.self, m.whole = true, m.whole || whole
}

// stripped are the fields that the system owns; see stripMetaManager of
// k8s.io/apimachinery/pkg/util/managedfields.
var stripped = [][]string{
	{"apiVersion"}, {"kind"}, {"metadata"},
	{"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "creationTimestamp"},
	{"metadata", "selfLink"}, {"metadata", "uid"}, {"metadata", "clusterName"},
	{"metadata", "generation"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"},
}

// newMask leaves out what the system owns and what an endpoint resets.
func newMask(reset []string) *mask {
	m := &mask{}
	for _, path := range stripped {
		m.add(false, path...)
	}
	for _, dotted := range reset {
		m.add(true, strings.Split(dotted, ".")...)
	}
	return m
}
