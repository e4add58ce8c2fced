package namespace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// seen is what a round of deleting found.
type seen struct {
	// discovery is why it is not known what there could be; stale are the groups of
	// which the server could not tell.
	discovery error
	stale     []schema.GroupVersion
	// failures are of deletions and lists.
	failures []error
	// remaining is how many objects each resource still has, finalizers how many
	// objects each of them holds.
	remaining  map[schema.GroupVersionResource]int
	finalizers map[string]int
}

// decide returns what the conditions of the namespace have to say, and whether it
// may go.
func decide(s seen) (conditions []corev1.NamespaceCondition, done bool) {
	return []corev1.NamespaceCondition{
		condition(corev1.NamespaceDeletionDiscoveryFailure, discoveryProblem(s), "DiscoveryFailed",
			"ResourcesDiscovered", "All resources successfully discovered"),
		condition(corev1.NamespaceDeletionGVParsingFailure, "", "GroupVersionParsingFailed",
			"ParsedGroupVersions", "All legacy kube types successfully parsed"),
		condition(corev1.NamespaceDeletionContentFailure, contentProblem(s.failures), "ContentDeletionFailed",
			"ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
		condition(corev1.NamespaceContentRemaining, contentLeft(s.remaining), "SomeResourcesRemain",
			"ContentRemoved", "All content successfully removed"),
		condition(corev1.NamespaceFinalizersRemaining, finalizersLeft(s.finalizers), "SomeFinalizersRemain",
			"ContentHasNoFinalizers", "All content-preserving finalizers finished"),
	}, s.discovery == nil && len(s.stale)+len(s.failures)+len(s.remaining) == 0
}

// condition is true if there is a problem.
func condition(of corev1.NamespaceConditionType, problem, reason, fine, message string) corev1.NamespaceCondition {
	if problem != "" {
		return corev1.NamespaceCondition{Type: of, Status: corev1.ConditionTrue, Reason: reason, Message: problem}
	}
	return corev1.NamespaceCondition{Type: of, Status: corev1.ConditionFalse, Reason: fine, Message: message}
}

func discoveryProblem(s seen) string {
	switch {
	case s.discovery != nil:
		return s.discovery.Error()
	case len(s.stale) == 0:
		return ""
	}
	var groups []string
	for _, gv := range s.stale {
		groups = append(groups, fmt.Sprintf("%s: stale GroupVersion discovery: %s", gv, gv))
	}
	slices.Sort(groups)
	return fmt.Sprintf("Discovery failed for some groups, %d failing: unable to retrieve the complete list of server APIs: %s",
		len(groups), strings.Join(groups, ", "))
}

func contentProblem(failures []error) string {
	if len(failures) == 0 {
		return ""
	}
	var all []string
	for _, err := range failures {
		all = append(all, err.Error())
	}
	slices.Sort(all)
	return fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(all), strings.Join(all, ", "))
}

func contentLeft(remaining map[schema.GroupVersionResource]int) string {
	var all []string
	for r, n := range remaining {
		all = append(all, fmt.Sprintf("%s.%s has %d resource instances", r.Resource, r.Group, n))
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return "Some resources are remaining: " + strings.Join(all, ", ")
}

func finalizersLeft(finalizers map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(finalizers)) {
		all = append(all, fmt.Sprintf("%s in %d resource instances", name, finalizers[name]))
	}
	if len(all) == 0 {
		return ""
	}
	return "Some content in the namespace has finalizers remaining: " + strings.Join(all, ", ")
}

// merge puts conditions in place of those of the same types, and reports whether that
// changes anything. The time of a transition changes with the status only.
func merge(has *[]corev1.NamespaceCondition, wanted []corev1.NamespaceCondition, now metav1.Time) (changed bool) {
	for _, w := range wanted {
		i := slices.IndexFunc(*has, func(c corev1.NamespaceCondition) bool { return c.Type == w.Type })
		if i < 0 {
			w.LastTransitionTime = now
			*has = append(*has, w)
			changed = true
			continue
		}
		old := (*has)[i]
		w.LastTransitionTime = old.LastTransitionTime
		if old == w {
			continue
		}
		if old.Status != w.Status {
			w.LastTransitionTime = now
		}
		(*has)[i] = w
		changed = true
	}
	return changed
}
