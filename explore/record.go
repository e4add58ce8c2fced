package explore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// record is what happened in a run, as seen by all processes of the controller.
type record struct {
	mu     sync.Mutex
	writes []call
	times  map[string]int
	// lines tell of writes and faults, in order.
	lines []string
	// step is the present one, from 0 on.
	step int
	// heard are the resources of which watches told something, by step.
	heard map[int][]string
	// paths are the resources that were written, by the controller or by a step.
	paths []string
	// anyRevision says that something was read of which an old state will do.
	anyRevision bool
	// generated maps names that the server made to what stands for them.
	generated map[string]string
}

func newRecord() *record {
	return &record{times: map[string]int{}, heard: map[int][]string{}, generated: map[string]string{}, step: -1}
}

// begins notes a step.
func (r *record) begins(step int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step = step
	r.lines = append(r.lines, fmt.Sprintf("-- step %d", step+1))
}

// hears notes what a watch told something of.
func (r *record) hears(resource string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard[r.step] = added(r.heard[r.step], resource)
}

// added is a sorted list with an element.
func added(list []string, s string) []string {
	if i, found := slices.BinarySearch(list, s); !found {
		return slices.Insert(list, i, s)
	}
	return list
}

// arrives notes a write, and returns how it is called and how often it was done.
func (r *record) arrives(c call, body named) (string, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.name == "" && c.verb == "create" {
		c.name = body.Metadata.Name
		if c.name == "" {
			c.name = r.stand(body.Metadata.GenerateName)
		}
	} else if stand, ok := r.generated[c.name]; ok {
		c.name = stand
	}
	c.conditional = body.Metadata.Revision != "" || body.Preconditions.Revision != ""
	r.paths = added(r.paths, c.path)
	r.writes = append(r.writes, c)
	write := c.String()
	r.times[write]++
	r.lines = append(r.lines, write)
	return write, r.times[write]
}

// stand is what stands for names that are generated of a prefix.
func (r *record) stand(prefix string) string {
	for name, stand := range r.generated {
		prefix = strings.ReplaceAll(prefix, name, stand)
	}
	return prefix + "~"
}

// touched notes a write of a step.
func (r *record) touched(c call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paths = added(r.paths, c.path)
}

// permitted notes that an old state will do for somebody.
func (r *record) permitted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.anyRevision = true
}

// answered notes the name that an object was given.
func (r *record) answered(content []byte) {
	var n named
	if json.Unmarshal(content, &n) == nil {
		r.learn(n)
	}
}

func (r *record) learn(n named) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := n.Metadata
	if _, known := r.generated[m.Name]; !known && m.GenerateName != "" && strings.HasPrefix(m.Name, m.GenerateName) {
		r.generated[m.Name] = r.stand(m.GenerateName)
	}
}

// tell notes something that is no write.
func (r *record) tell(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, "-- "+fmt.Sprintf(format, args...))
}

func (r *record) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.writes)
}

func (r *record) resources() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.paths)
}

// maxLines bounds what a report tells of the writes.
const maxLines = 60

// history is what happened, the end of it if it is long.
func (r *record) history() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	if left := len(lines) - maxLines; left > 0 {
		lines = append([]string{fmt.Sprintf("... %d before", left)}, lines[left:]...)
	}
	return "\t" + strings.Join(lines, "\n\t")
}
