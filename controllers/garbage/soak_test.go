package garbage_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// forest is the model: which objects there have to be, and who owns them.
type forest struct {
	objects map[string]*object  // by their names
	owners  map[string][]string // of each, their names
	depth   map[string]int
}

// delete removes an object, and what goes with it.
func (f *forest) delete(name string, policy metav1.DeletionPropagation) {
	delete(f.objects, name)
	delete(f.owners, name)
	for child, by := range f.owners {
		kept := slices.DeleteFunc(slices.Clone(by), func(o string) bool { return o == name })
		if len(kept) == len(by) {
			continue
		}
		f.owners[child] = kept
		if len(kept) == 0 && policy != orphan {
			f.delete(child, policy)
		}
	}
}

// family is all that is connected with an object.
func (f *forest) family(name string, into map[string]bool) {
	if into[name] {
		return
	}
	into[name] = true
	for child, by := range f.owners {
		if child == name {
			for _, o := range by {
				f.family(o, into)
			}
		} else if slices.Contains(by, name) {
			f.family(child, into)
		}
	}
}

// TestForests plants and fells families of objects while connections break: in each
// round, one deletion in a family, right after some of its members were made.
func TestForests(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := stage(t)
	f := &forest{objects: map[string]*object{}, owners: map[string][]string{}, depth: map[string]int{}}
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		for i := range 12 {
			s.plant(f, r, fmt.Sprintf("o%d-%d", round, i))
			if r.IntN(8) == 0 {
				s.Cut()
			}
		}
		s.fell(f, r)
		s.Cut()
		s.matches(f)
	}
	s.settle()
	s.matches(f)
}

// plant makes an object, with up to two owners of one family.
func (s *scene) plant(f *forest, r *rand.Rand, name string) {
	s.t.Helper()
	kind := []schema.GroupVersionKind{configMap, secret, widget}[r.IntN(3)]
	var by []string
	if able := slices.DeleteFunc(slices.Sorted(maps.Keys(f.objects)), func(n string) bool { return f.depth[n] >= 3 }); len(able) > 0 && r.IntN(4) > 0 {
		by = append(by, able[r.IntN(len(able))])
		if second := able[r.IntN(len(able))]; second != by[0] {
			by = append(by, second)
		}
	}
	var owners []*object
	for _, o := range by {
		owners = append(owners, f.objects[o])
		f.depth[name] = max(f.depth[name], f.depth[o]+1)
	}
	edits := []edit{ownedBy(owners...)}
	if r.IntN(3) == 0 {
		edits = append(edits, notBlocking)
	}
	f.objects[name], f.owners[name] = s.makeSurely(newObject(kind, name, edits...)), by
}

// fell deletes one member of some families.
func (s *scene) fell(f *forest, r *rand.Rand) {
	s.t.Helper()
	touched := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(f.objects)) {
		if touched[name] || r.IntN(3) > 0 {
			continue
		}
		f.family(name, touched)
		policy := []metav1.DeletionPropagation{background, foreground, orphan}[r.IntN(3)]
		s.deleteSurely(f.objects[name], policy)
		f.delete(name, policy)
		if r.IntN(3) == 0 {
			s.Cut()
		}
	}
}

// makeSurely makes an object although connections break.
func (s *scene) makeSurely(o *object) *object {
	s.t.Helper()
	for {
		made, err := s.of(o.GroupVersionKind()).Create(s.t.Context(), o)
		if client.IsAlreadyExists(err) { // an answer was lost
			made, err = s.of(o.GroupVersionKind()).Get(s.t.Context(), client.KeyOf(o))
		}
		if err == nil {
			return made
		}
		s.mayBreak(err)
	}
}

func (s *scene) deleteSurely(o *object, policy metav1.DeletionPropagation) {
	s.t.Helper()
	for {
		err := s.of(o.GroupVersionKind()).Delete(s.t.Context(), client.KeyOf(o), client.IfUID(o.GetUID()), client.Propagation(policy))
		if client.IgnoreNotFound(err) == nil {
			return
		}
		s.mayBreak(err)
	}
}

// mayBreak fails the test for errors that the server sent.
func (s *scene) mayBreak(err error) {
	s.t.Helper()
	if client.IsConflict(err) || client.IsInvalid(err) || client.IsForbidden(err) || s.t.Context().Err() != nil {
		s.t.Fatal(err)
	}
}

// matches waits until the server has just what the model says.
func (s *scene) matches(f *forest) {
	s.t.Helper()
	for _, kind := range []schema.GroupVersionKind{configMap, secret, widget} {
		var want []string
		for name, o := range f.objects {
			if o.GroupVersionKind() == kind {
				want = append(want, describe(name, f.owners[name]))
			}
		}
		slices.Sort(want)
		evenkeeltest.EventuallyAll(s.Env, func(all []*meta) error {
			var got []string
			for _, o := range all {
				if !strings.HasPrefix(o.Name, "o") {
					continue
				}
				var by []string
				for _, ref := range o.OwnerReferences {
					by = append(by, ref.Name)
				}
				got = append(got, describe(o.Name, by))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				return fmt.Errorf("there are\n%v, want\n%v", got, want)
			}
			return nil
		}, client.Kind(kind))
	}
}

func describe(name string, owners []string) string {
	owners = slices.Sorted(slices.Values(owners))
	return name + " of " + strings.Join(owners, "+")
}
