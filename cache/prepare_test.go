package cache

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// prepared stores pods that were prepared before, each near the one before it.
func prepared(store *Store[*corev1.Pod], prepare func(pod *corev1.Pod) Prepared[*corev1.Pod]) {
	var b Batch[*corev1.Pod]
	for i := range 3 {
		b.SetPrepared(prepare(podOfSet("pod-" + strconv.Itoa(i))))
	}
	store.Apply(&b)
}

func TestPreparedObjectsAreSet(t *testing.T) {
	for name, opts := range map[string]Options[*corev1.Pod]{
		"hot":       {},
		"compact":   {Compact: Protobuf[corev1.Pod]()},
		"detecting": {DetectMutations: true},
		"changed":   {Transform: func(p *corev1.Pod) *corev1.Pod { p.Spec.Hostname = "set"; return p }},
	} {
		t.Run(name, func(t *testing.T) {
			store := New(opts)
			var near Object
			prepared(store, func(pod *corev1.Pod) Prepared[*corev1.Pod] {
				p := store.Prepare(pod, near)
				near = pod
				return p
			})
			a, ok := store.Get("", "pod-0")
			b, _ := store.Get("", "pod-1")
			if !ok || a.Name != "pod-0" || b.Name != "pod-1" || store.Count(Label("app", "web")) != 3 {
				t.Errorf("the store has %v and %v", a, b)
			}
			if name == "hot" && &a.Spec.Containers[0] != &b.Spec.Containers[0] {
				t.Error("the containers are there twice")
			}
			if name == "changed" && a.Spec.Hostname != "set" {
				t.Error("the object was not transformed")
			}
		})
	}
}

// TestSharedObjectsAreNotWrittenTo: others read their parts.
func TestSharedObjectsAreNotWrittenTo(t *testing.T) {
	for name, opts := range map[string]Options[*corev1.Pod]{
		"hot":       {},
		"detecting": {DetectMutations: true},
		"changed":   {Transform: func(p *corev1.Pod) *corev1.Pod { p.Spec.Containers[0].Name = "changed"; return p }},
	} {
		t.Run(name, func(t *testing.T) {
			store := New(opts)
			common := podOfSet("common")
			was := common.DeepCopy()
			prepared(store, func(pod *corev1.Pod) Prepared[*corev1.Pod] {
				pod.Spec, pod.Labels = common.Spec, common.Labels
				return store.PrepareShared(pod, 100)
			})
			sameJSON(t, common, was)
			got, _ := store.Get("", "pod-2")
			if shared := &got.Spec.Containers[0] == &common.Spec.Containers[0]; shared != (name == "hot") {
				t.Errorf("the stored pod has the common containers: %v", shared)
			}
		})
	}
}

// TestAPreparedObjectIsIndexedByItsOwnLabels, whatever the labels were that it was
// found to have in common with the revision before it.
func TestAPreparedObjectIsIndexedByItsOwnLabels(t *testing.T) {
	for name, between := range map[string]func(*Store[*corev1.Pod]){
		"nothing":         func(*Store[*corev1.Pod]) {},
		"another label":   func(s *Store[*corev1.Pod]) { s.Set(labelled("2", "db")) },
		"a deletion":      func(s *Store[*corev1.Pod]) { s.Delete(KeyOf(labelled("1", "web"))) },
		"another object":  func(s *Store[*corev1.Pod]) { s.Set(podOfSet("other")) },
		"another and now": func(s *Store[*corev1.Pod]) { s.Set(labelled("2", "db"), labelled("3", "web")) },
	} {
		t.Run(name, func(t *testing.T) {
			store := New(Options[*corev1.Pod]{Indexes: map[string]func(*corev1.Pod) []string{
				"revision": func(p *corev1.Pod) []string { return []string{p.ResourceVersion} },
			}})
			store.Set(labelled("1", "web"))
			ready := store.Prepare(labelled("9", "web"), nil)
			between(store)
			var b Batch[*corev1.Pod]
			b.SetPrepared(ready)
			store.Apply(&b)
			if web, db := store.Count(Label("tier", "web")), store.Count(Label("tier", "db")); web != 1 || db != 0 {
				t.Errorf("%d pods are web and %d are db", web, db)
			}
			if n := store.Count(Index("revision", "9")); n != 1 {
				t.Errorf("%d pods are indexed by their new revision", n)
			}
		})
	}
}

func labelled(revision, tier string) *corev1.Pod {
	pod := podOfSet("labelled")
	pod.ResourceVersion, pod.Labels["tier"] = revision, tier
	return pod
}
