package storage_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/even-keel/evenkeel/storage"
)

// fate is what became of a call.
type fate int

const (
	// fateUnknown: the call failed. A write may have happened, or may yet.
	fateUnknown fate = iota
	// fateDone: a read was answered, or a write happened.
	fateDone
	// fateRefused: a write met something else than it expected.
	fateRefused
	// fateSeen: a write whose call failed, but somebody has seen its value.
	fateSeen
)

// never is when a call returns whose outcome is unknown.
const never = math.MaxInt64

// call is one call of one client. Every written value is unique.
type call struct {
	client     int
	begin, end int64
	read       bool
	write      storage.Write // of a read only the key
	fate       fate
	revision   storage.Revision // of a write that happened
	found      register         // what the key held, if fate is done or refused
}

func (c call) String() string {
	what := fmt.Sprintf("create %q", c.write.Value)
	switch {
	case c.read:
		return fmt.Sprintf("get -> %v", c.found)
	case c.write.Delete:
		what = fmt.Sprintf("delete at %d", c.write.At)
	case c.write.At > 0:
		what = fmt.Sprintf("replace at %d by %q", c.write.At, c.write.Value)
	}
	switch c.fate {
	case fateDone:
		return fmt.Sprintf("%s -> %d, was %v", what, c.revision, c.found)
	case fateSeen:
		return fmt.Sprintf("%s -> failed, seen at %d", what, c.revision)
	case fateRefused:
		return fmt.Sprintf("%s -> refused, is %v", what, c.found)
	}
	return what + " -> failed"
}

// register is what a key holds; revision zero means nothing.
type register struct {
	value    string
	revision storage.Revision
}

func (r register) String() string {
	if r.revision == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%q at %d", r.value, r.revision)
}

func registerOf(e storage.Entry) register {
	return register{value: string(e.Value), revision: e.Revision}
}

// keyState is the model of one key: what it holds, and the newest revision that
// it is known to have had.
type keyState struct {
	holds  register
	newest storage.Revision
}

// step says whether a call can have happened in a state, and what it leaves.
func (s keyState) step(c call) (bool, keyState) {
	holdsExpected := s.holds.revision == c.write.At
	switch {
	case c.read:
		return c.found == s.holds, s
	case c.fate == fateRefused:
		return c.found == s.holds && !holdsExpected, s
	case c.fate == fateUnknown: // a delete: what nobody saw of other writes is left out by settle
		if holdsExpected {
			s.holds = register{}
		}
		return true, s
	case !holdsExpected || c.revision <= s.newest || c.fate == fateDone && c.found != s.holds:
		return false, s
	case c.write.Delete:
		return true, keyState{newest: c.revision}
	}
	return true, keyState{holds: register{string(c.write.Value), c.revision}, newest: c.revision}
}

var keyModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[storage.Key][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(call).write.Key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, key := range slices.Sorted(maps.Keys(byKey)) {
			parts = append(parts, byKey[key])
		}
		return parts
	},
	Init: func() any { return keyState{} },
	Step: func(state, input, _ any) (bool, any) {
		ok, next := state.(keyState).step(input.(call))
		return ok, next
	},
	DescribeOperation: func(input, _ any) string { return input.(call).String() },
	DescribeState:     func(state any) string { return state.(keyState).holds.String() },
}

// settle turns what the clients know into what can be checked. Every answer
// tells all about its key, so a write whose call failed either has been seen,
// and then its revision is known and it happened before it was seen; or nobody
// has seen it, and then nothing that is known came after it, and it can be left
// out. Deletes leave nothing to see: one that failed stays open, unless another
// write has used up the revision that it expected.
func settle(calls []call) ([]call, error) {
	seen := map[string]call{}
	for _, c := range calls {
		if c.fate == fateUnknown || c.found.revision == 0 {
			continue
		}
		first, ok := seen[c.found.value]
		if ok && first.found != c.found {
			return nil, fmt.Errorf("%q was seen at revisions %d and %d", c.found.value, first.found.revision, c.found.revision)
		}
		if !ok || c.end < first.end {
			seen[c.found.value] = c
		}
	}
	var settled []call
	for _, c := range calls {
		if c.fate == fateUnknown && !c.read && !c.write.Delete {
			if by, ok := seen[string(c.write.Value)]; ok {
				c.fate, c.revision, c.end = fateSeen, by.found.revision, by.end
			}
		}
		if c.fate != fateUnknown || c.write.Delete {
			settled = append(settled, c)
		}
	}
	return dropFutileDeletes(settled), nil
}

func dropFutileDeletes(calls []call) []call {
	type version struct {
		key storage.Key
		at  storage.Revision
	}
	used := map[version]bool{}
	for _, c := range calls {
		if !c.read && (c.fate == fateDone || c.fate == fateSeen) {
			used[version{c.write.Key, c.write.At}] = true
		}
	}
	return slices.DeleteFunc(calls, func(c call) bool {
		return c.fate == fateUnknown && used[version{c.write.Key, c.write.At}]
	})
}

// checkRevisions wants the revisions of writes that happened to be unique, and
// in the order of time: a write that began after another had returned has the
// greater revision.
func checkRevisions(calls []call) error {
	var writes []call
	for _, c := range calls {
		if !c.read && (c.fate == fateDone || c.fate == fateSeen) {
			writes = append(writes, c)
		}
	}
	slices.SortFunc(writes, func(a, b call) int { return cmp.Compare(a.revision, b.revision) })
	for i := 1; i < len(writes); i++ {
		if writes[i].revision == writes[i-1].revision {
			return fmt.Errorf("one revision for two writes:\n%q: %v\n%q: %v", writes[i-1].write.Key, writes[i-1], writes[i].write.Key, writes[i])
		}
	}
	var latest call // of those with smaller revisions, the one that began last
	for _, c := range writes {
		if c.end < latest.begin {
			return fmt.Errorf("the later write has the smaller revision:\n%q: %v\n%q: %v", c.write.Key, c, latest.write.Key, latest)
		}
		if c.begin > latest.begin {
			latest = c
		}
	}
	return nil
}

// checkLog compares the calls with the store's own log from the beginning: it
// has every write that was acknowledged, and nothing that nobody wrote.
func checkLog(calls []call, log []storage.Event) error {
	type mark struct {
		key   storage.Key
		value string           // of what was written,
		gone  storage.Revision // or the revision that was deleted
	}
	open, done := map[mark]bool{}, map[mark]storage.Revision{}
	for _, c := range calls {
		m := mark{key: c.write.Key, value: string(c.write.Value)}
		if c.write.Delete {
			m.gone = c.write.At
		}
		switch {
		case c.read, c.fate == fateRefused:
		case c.fate == fateUnknown:
			open[m] = true
		default:
			done[m] = c.revision
		}
	}
	var errs []error
	for _, event := range log {
		m := mark{key: event.Key, value: string(event.Value)}
		if event.Deleted {
			m.gone = event.Previous.Revision
		}
		if revision, ok := done[m]; ok && revision == event.Revision {
			delete(done, m)
		} else if !open[m] {
			errs = append(errs, fmt.Errorf("the log has %+v, which nobody wrote", event))
		}
	}
	for m, revision := range done {
		errs = append(errs, fmt.Errorf("%+v was acknowledged with revision %d and is not in the log", m, revision))
	}
	return errors.Join(errs...)
}

// checkHistory fails the test unless the calls can have happened one after the
// other, each at some moment between its begin and its end.
func checkHistory(t *testing.T, calls []call) {
	t.Helper()
	settled, err := settle(calls)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkRevisions(settled); err != nil {
		t.Error(err)
	}
	result, info := linearize(settled)
	if result == porcupine.Ok {
		return
	}
	path := picturePath(t)
	if err := porcupine.VisualizePath(keyModel, info, path); err != nil {
		t.Errorf("picture of the history: %v", err)
	}
	t.Fatalf("linearizable: %s; see %s", result, path)
}

func linearize(settled []call) (porcupine.CheckResult, porcupine.LinearizationInfo) {
	var ops []porcupine.Operation
	for _, c := range settled {
		ops = append(ops, porcupine.Operation{ClientId: c.client, Input: c, Call: c.begin, Return: c.end})
	}
	return porcupine.CheckOperationsVerbose(keyModel, ops, time.Minute)
}

// picturePath is where a history is drawn: kept after the test, or where
// -artifacts wants it.
func picturePath(t *testing.T) string {
	t.Helper()
	dir := t.ArtifactDir()
	if f := flag.Lookup("test.artifacts"); f == nil || f.Value.String() != "true" {
		var err error
		if dir, err = os.MkdirTemp("", "evenkeel-history-"); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "history.html")
}

// did makes a call for a table: a write of "v" that is given a revision.
func did(begin, end int64, w storage.Write, revision storage.Revision, found register) call {
	return call{begin: begin, end: end, write: w, fate: fateDone, revision: revision, found: found}
}

func got(begin, end int64, found register) call {
	return call{begin: begin, end: end, read: true, write: storage.Write{Key: "k"}, fate: fateDone, found: found}
}

func failed(begin int64, w storage.Write) call {
	return call{begin: begin, end: never, write: w}
}

// TestLinearizabilityOfKnownHistories holds the checker itself to histories
// that a store must and must not show.
func TestLinearizabilityOfKnownHistories(t *testing.T) {
	var (
		none      = register{}
		one, two  = register{"one", 2}, register{"two", 3}
		createOne = storage.Create("k", []byte("one"))
		toTwo     = storage.Replace("k", []byte("two"), 2)
		deleteOne = storage.Delete("k", 2)
	)
	histories := map[string]struct {
		calls []call
		right bool
	}{
		"one after the other": {right: true, calls: []call{
			did(1, 2, createOne, 2, none), got(3, 4, one), did(5, 6, toTwo, 3, one), got(7, 8, two),
		}},
		"a read beside a write sees the old":   {right: true, calls: []call{did(1, 2, createOne, 2, none), did(3, 8, toTwo, 3, one), got(4, 5, one)}},
		"a read beside a write sees the new":   {right: true, calls: []call{did(1, 2, createOne, 2, none), did(3, 8, toTwo, 3, one), got(4, 5, two)}},
		"a read after a write sees the old":    {calls: []call{did(1, 2, createOne, 2, none), did(3, 4, toTwo, 3, one), got(5, 6, one)}},
		"a read goes back":                     {calls: []call{did(1, 2, createOne, 2, none), did(3, 9, toTwo, 3, one), got(4, 5, two), got(6, 7, one)}},
		"a read of nothing after a write":      {calls: []call{did(1, 2, createOne, 2, none), got(3, 4, none)}},
		"a read of what nobody wrote":          {calls: []call{got(1, 2, one)}},
		"a read with another revision":         {calls: []call{did(1, 2, createOne, 2, none), got(3, 4, register{"one", 3})}},
		"two creates of one key":               {calls: []call{did(1, 9, createOne, 2, none), did(1, 9, storage.Create("k", []byte("two")), 3, none)}},
		"two replaces at one revision":         {calls: []call{did(1, 2, createOne, 2, none), did(3, 9, toTwo, 3, one), did(3, 9, storage.Replace("k", []byte("three"), 2), 4, one)}},
		"a replace found something else":       {calls: []call{did(1, 2, createOne, 2, none), did(3, 4, toTwo, 3, none)}},
		"a failed write seen":                  {right: true, calls: []call{did(1, 2, createOne, 2, none), failed(3, toTwo), got(5, 6, one), got(7, 8, two)}},
		"a failed write never seen":            {right: true, calls: []call{did(1, 2, createOne, 2, none), failed(3, toTwo), got(5, 6, one)}},
		"a failed write seen and undone":       {calls: []call{did(1, 2, createOne, 2, none), failed(3, toTwo), got(5, 6, two), got(7, 8, one)}},
		"a failed write seen before it began":  {calls: []call{did(1, 2, createOne, 2, none), got(3, 4, two), failed(5, toTwo)}},
		"a failed write seen at two revisions": {calls: []call{did(1, 2, createOne, 2, none), failed(3, toTwo), got(5, 6, two), got(7, 8, register{"two", 4})}},
		"a failed delete seen":                 {right: true, calls: []call{did(1, 2, createOne, 2, none), failed(3, deleteOne), got(5, 6, one), got(7, 8, none)}},
		"a failed delete never seen":           {right: true, calls: []call{did(1, 2, createOne, 2, none), failed(3, deleteOne), did(5, 6, toTwo, 3, one)}},
		"a failed delete seen and undone":      {calls: []call{did(1, 2, createOne, 2, none), failed(3, deleteOne), got(5, 6, none), got(7, 8, one)}},
		"a failed delete of something else":    {calls: []call{did(1, 2, createOne, 2, none), failed(3, storage.Delete("k", 9)), got(5, 6, none)}},
		"a refusal that tells the truth": {right: true, calls: []call{
			did(1, 2, createOne, 2, none), {begin: 3, end: 4, write: createOne, fate: fateRefused, found: one},
		}},
		"a refusal of what was expected": {calls: []call{
			did(1, 2, createOne, 2, none), {begin: 3, end: 4, write: toTwo, fate: fateRefused, found: one},
		}},
		"a revision used twice": {calls: []call{
			did(1, 2, createOne, 2, none), did(3, 4, storage.Create("other", []byte("o")), 2, none),
		}},
		"the later write has the smaller revision": {calls: []call{
			did(1, 2, createOne, 3, none), did(3, 4, storage.Create("other", []byte("o")), 2, none),
		}},
	}
	for name, history := range histories {
		t.Run(name, func(t *testing.T) {
			settled, err := settle(history.calls)
			right := err == nil && checkRevisions(settled) == nil
			if right {
				result, _ := linearize(settled)
				right = result == porcupine.Ok
			}
			if right != history.right {
				t.Errorf("right: %t, want %t", right, history.right)
			}
		})
	}
}
