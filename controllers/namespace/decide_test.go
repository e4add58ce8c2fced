package namespace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDecide(t *testing.T) {
	metrics := schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}
	for name, test := range map[string]struct {
		seen seen
		// failing are the conditions that are true.
		failing []string
		done    bool
	}{
		"empty": {done: true},
		"the server cannot be asked": {
			seen: seen{discovery: errors.New("it does not answer")}, failing: []string{"NamespaceDeletionDiscoveryFailure DiscoveryFailed: it does not answer"}},
		"a group is down": {
			seen: seen{stale: []schema.GroupVersion{metrics}}, failing: []string{"NamespaceDeletionDiscoveryFailure DiscoveryFailed: Discovery failed for some groups, 1 failing: " +
				"unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1"}},
		"some cannot be deleted": {
			seen: seen{failures: []error{errors.New("b"), errors.New("a")}}, failing: []string{"NamespaceDeletionContentFailure ContentDeletionFailed: Failed to delete all resource types, 2 remaining: a, b"}},
		"some are left": {
			seen: seen{
				remaining:  map[schema.GroupVersionResource]int{corev1.SchemeGroupVersion.WithResource("pods"): 2, metrics.WithResource("pods"): 1},
				finalizers: map[string]int{"z.example.com/x": 1, "a.example.com/x": 2},
			},
			failing: []string{
				"NamespaceContentRemaining SomeResourcesRemain: Some resources are remaining: pods. has 2 resource instances, pods.metrics.k8s.io has 1 resource instances",
				"NamespaceFinalizersRemaining SomeFinalizersRemain: Some content in the namespace has finalizers remaining: a.example.com/x in 2 resource instances, z.example.com/x in 1 resource instances",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			conditions, done := decide(test.seen)
			var failing []string
			for _, c := range conditions {
				if c.Status == corev1.ConditionTrue {
					failing = append(failing, fmt.Sprintf("%s %s: %s", c.Type, c.Reason, c.Message))
				}
			}
			if fmt.Sprint(failing) != fmt.Sprint(test.failing) || done != test.done || len(conditions) != 5 {
				t.Errorf("got %q, done %t, %d conditions; want %q, done %t", failing, done, len(conditions), test.failing, test.done)
			}
		})
	}
}

// TestNothingIsLeftBehind: a namespace goes only if all was seen and all is gone, and
// then all conditions are false.
func TestNothingIsLeftBehind(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	some := func() bool { return r.IntN(3) == 0 }
	for range 10_000 {
		var s seen
		if some() {
			s.discovery = errors.New("x")
		}
		if some() {
			s.stale = []schema.GroupVersion{{Version: "v1"}}
		}
		if some() {
			s.failures = []error{errors.New("x")}
		}
		if some() {
			s.remaining = map[schema.GroupVersionResource]int{{Resource: "pods"}: 1 + r.IntN(3)}
		}
		if s.remaining != nil && some() {
			s.finalizers = map[string]int{"x": 1}
		}
		conditions, done := decide(s)
		held := false
		for _, c := range conditions {
			held = held || c.Status == corev1.ConditionTrue
		}
		if held == done {
			t.Fatalf("done %t with %+v of %+v", done, conditions, s)
		}
	}
}

func TestConditionsChangeOnceEach(t *testing.T) {
	first, second := metav1.Unix(1, 0), metav1.Unix(2, 0)
	all, _ := decide(seen{})
	other := corev1.NamespaceCondition{Type: "Other", Status: corev1.ConditionTrue}
	has := []corev1.NamespaceCondition{other}
	if !merge(&has, all, first) || merge(&has, all, second) || len(has) != 6 || has[0] != other {
		t.Fatalf("conditions are %+v", has)
	}
	all, _ = decide(seen{failures: []error{errors.New("x")}})
	if !merge(&has, all, second) {
		t.Error("nothing has changed")
	}
	for _, c := range has[1:] {
		want := first
		if c.Type == corev1.NamespaceDeletionContentFailure {
			want = second
		}
		if c.LastTransitionTime != want {
			t.Errorf("%s changed at %s", c.Type, c.LastTransitionTime)
		}
	}
	all, _ = decide(seen{failures: []error{errors.New("y")}})
	if !merge(&has, all, metav1.Unix(3, 0)) || has[3].LastTransitionTime != second || has[3].Message != "Failed to delete all resource types, 1 remaining: y" {
		t.Errorf("another message: %+v", has[3])
	}
}
