package garbage_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

func TestDependentsGoAfterTheirOwner(t *testing.T) {
	s := stage(t)
	root := s.make(configMap, "root")
	child, custom := s.make(secret, "child", ownedBy(root)), s.make(widget, "child", ownedBy(root))
	grandchild := s.make(configMap, "grandchild", ownedBy(custom))
	other := s.make(configMap, "other")
	others := s.make(secret, "others", ownedBy(other))
	s.delete(root, background)
	s.gone(root, child, custom, grandchild)
	s.there(other, others)
}

func TestOwnersOutsideOfNamespaces(t *testing.T) {
	s := stage(t)
	sun := s.make(planet, "sun")
	earth := s.make(planet, "earth", ownedBy(sun))
	tree := s.make(widget, "tree", ownedBy(earth))
	s.delete(sun, background)
	s.gone(sun, earth, tree)
}

// waits checks that an object is deleted in the foreground, and still there.
func waits(o *meta) error {
	if o.DeletionTimestamp == nil || !slices.Contains(o.Finalizers, metav1.FinalizerDeleteDependents) {
		return fmt.Errorf("deleted at %v, finalizers %v", o.DeletionTimestamp, o.Finalizers)
	}
	return nil
}

func deleted(o *meta) error {
	if o.DeletionTimestamp == nil {
		return errors.New("it is not deleted")
	}
	return nil
}

func TestInTheForegroundOwnersGoLast(t *testing.T) {
	s := stage(t)
	root := s.make(widget, "root")
	child := s.make(configMap, "child", ownedBy(root))
	leaf := s.make(secret, "leaf", ownedBy(child), held)
	loose := s.make(secret, "loose", ownedBy(root), notBlocking, held)
	s.delete(root, foreground)
	s.eventually(leaf, deleted)
	s.eventually(loose, deleted)
	s.eventually(child, waits)
	s.eventually(root, waits)
	s.settle()
	s.eventually(child, waits)
	s.eventually(root, waits)
	s.letGo(leaf)
	s.gone(leaf, child, root)
	s.eventually(loose, deleted) // root has not waited for it
	s.letGo(loose)
	s.gone(loose)
}

func TestInTheForegroundWithoutDependents(t *testing.T) {
	s := stage(t)
	root := s.make(widget, "root")
	s.delete(root, foreground)
	s.gone(root)
}

func TestADependentThatBlocksNoMoreLetsItsOwnerGo(t *testing.T) {
	s := stage(t)
	root := s.make(widget, "root")
	child := s.make(configMap, "child", ownedBy(root), held)
	s.delete(root, foreground)
	s.eventually(child, deleted)
	s.eventually(root, waits)
	if _, err := s.of(configMap).Patch(t.Context(), client.KeyOf(child), client.MergePatch(`{"metadata":{"ownerReferences":null}}`)); err != nil {
		t.Fatal(err)
	}
	s.gone(root)
	s.eventually(child, deleted)
	s.letGo(child)
}

func TestOwnersInACircle(t *testing.T) {
	s := stage(t)
	a := s.make(configMap, "a")
	b := s.make(widget, "b", ownedBy(a))
	c := s.make(secret, "c", ownedBy(b))
	patch := map[string]any{"metadata": map[string]any{"ownerReferences": newObject(configMap, "", ownedBy(c)).GetOwnerReferences()}}
	if _, err := s.of(configMap).Patch(t.Context(), client.KeyOf(a), client.MergePatch(patch)); err != nil {
		t.Fatal(err)
	}
	s.delete(a, foreground)
	s.gone(a, b, c)
}

func TestOrphansStay(t *testing.T) {
	s := stage(t)
	root, second := s.make(widget, "root"), s.make(widget, "second")
	child, custom := s.make(configMap, "child", ownedBy(root)), s.make(widget, "custom", ownedBy(root, second))
	grandchild := s.make(secret, "grandchild", ownedBy(child))
	s.delete(root, orphan)
	s.gone(root)
	s.eventually(child, ownersAre())
	s.eventually(custom, ownersAre("second"))
	s.settle()
	s.there(child, custom, grandchild, second)
}

func ownersAre(names ...string) func(*meta) error {
	return func(o *meta) error {
		var got []string
		for _, ref := range o.OwnerReferences {
			got = append(got, ref.Name)
		}
		if !slices.Equal(got, names) {
			return fmt.Errorf("its owners are %v, want %v", got, names)
		}
		return nil
	}
}

func TestAbsentOwners(t *testing.T) {
	s := stage(t)
	root := s.make(configMap, "root")
	never := s.make(secret, "never", ownedByNobody(configMap, "never"))
	namesake := s.make(widget, "namesake", ownedByNobody(configMap, "root"))
	both := s.make(secret, "both", ownedByNobody(configMap, "root"), ownedBy(root))
	s.gone(never, namesake)
	s.eventually(both, ownersAre("root"))
	s.there(root, both)
}

func TestADependentOfTwoGoesWithTheLast(t *testing.T) {
	s := stage(t)
	a, b := s.make(configMap, "a"), s.make(widget, "b")
	child := s.make(secret, "child", ownedBy(a, b))
	s.delete(a, foreground)
	s.gone(a)
	s.eventually(child, ownersAre("b"))
	s.there(child)
	s.delete(b, background)
	s.gone(child)
}

func TestOwnersOfAnotherNamespaceAreAbsent(t *testing.T) {
	s := stage(t)
	s.Apply(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"far"}}`)
	root := s.make(configMap, "root")
	s.settle() // the collector knows root
	away := s.make(secret, "away", ownedBy(root), in("far"))
	s.gone(away)
	near := s.make(secret, "near", ownedBy(root))
	s.eventEventually("far", "away", fmt.Sprintf("ownerRef [v1/ConfigMap, namespace: far, name: root, uid: %s] does not exist in namespace \"far\"", root.GetUID()))
	s.settle()
	s.there(root, near)
}

func TestWhatIsInNoNamespaceHasNoOwnerInOne(t *testing.T) {
	s := stage(t)
	root := s.make(configMap, "root")
	s.settle()
	disk := s.make(volume, "disk", ownedBy(root))
	s.eventEventually("default", "disk", fmt.Sprintf("ownerRef [v1/ConfigMap, namespace: , name: root, uid: %s] does not exist in namespace \"\"", root.GetUID()))
	s.delete(root, background)
	s.gone(root)
	s.settle()
	s.there(disk)
}

// eventEventually waits for the warning about an owner's namespace.
func (s *scene) eventEventually(namespace, about, note string) {
	s.t.Helper()
	evenkeeltest.EventuallyAll(s.Env, func(all []*eventsv1.Event) error {
		var seen []string
		for _, e := range all {
			if e.Namespace == namespace && e.Regarding.Name == about && e.Reason == "OwnerRefInvalidNamespace" && e.Type == corev1.EventTypeWarning && e.Note == note {
				return nil
			}
			seen = append(seen, e.Regarding.Name+": "+e.Note)
		}
		return fmt.Errorf("the events are %s", strings.Join(seen, "; "))
	})
}

func TestOwnersOfKindsThatComeAndGo(t *testing.T) {
	s := stage(t)
	gizmo := schema.GroupVersionKind{Group: "late.example.com", Version: "v1", Kind: "Gizmo"}
	early := s.make(configMap, "early", ownedByNobody(gizmo, "early"))
	s.settle()
	s.there(early) // nobody knows whether its owner exists
	s.Apply(definition(gizmo, "gizmos", "Namespaced"))
	s.gone(early)

	root := s.make(gizmo, "root")
	child := s.make(configMap, "child", ownedBy(root))
	grandchild := s.make(gizmo, "grandchild", ownedBy(child))
	last := s.make(secret, "last", ownedBy(grandchild))
	s.delete(root, foreground)
	s.gone(root, child, grandchild, last)

	orphaned := s.make(configMap, "orphaned", ownedBy(s.make(gizmo, "another")))
	s.settle()
	definitions := s.of(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := definitions.Delete(t.Context(), client.Key{Name: "gizmos.late.example.com"}); err != nil {
		t.Fatal(err)
	}
	s.gone(orphaned)
}

func TestTheCollectorFinishesWhatItFinds(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Apply(definition(widget, "widgets", "Namespaced"))
	s := &scene{Env: env, t: t, conn: env.Conn()}
	var all []*object
	for _, policy := range []metav1.DeletionPropagation{background, foreground} {
		root := s.make(widget, strings.ToLower(string(policy)))
		child := s.make(configMap, "of-"+root.GetName(), ownedBy(root))
		all = append(all, root, child, s.make(secret, "of-"+child.GetName(), ownedBy(child)))
		s.delete(root, policy)
	}
	left := s.make(widget, "left")
	child := s.make(configMap, "of-left", ownedBy(left))
	s.delete(left, orphan)
	env.Run(collect)
	s.gone(all...)
	s.gone(left)
	s.eventually(child, ownersAre())
}
