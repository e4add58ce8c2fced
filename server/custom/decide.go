package custom

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Taken are the names that other definitions of a group have been given.
type Taken struct {
	resources, kinds map[string]bool
}

// TakenBy collects the names of definitions. All must be of one group.
func TakenBy(definitions []*Definition) Taken {
	t := Taken{resources: map[string]bool{}, kinds: map[string]bool{}}
	for _, d := range definitions {
		n := d.Status.AcceptedNames
		for _, name := range append([]string{n.Plural, n.Singular}, n.ShortNames...) {
			t.resources[name] = true
		}
		t.kinds[n.Kind], t.kinds[n.ListKind] = true, true
	}
	delete(t.resources, "")
	delete(t.kinds, "")
	return t
}

// Decide returns the status that a definition should have, given the names that
// others have, and whether that is another than it has. A definition that has
// all its names is established: objects are served before anybody is told.
func Decide(d *Definition, others Taken, now metav1.Time) (status apiextensionsv1.CustomResourceDefinitionStatus, changed bool) {
	status = *d.Status.DeepCopy()
	var problem *nameProblem
	status.AcceptedNames, problem = acceptNames(d.Spec.Names, d.Status.AcceptedNames, others)
	set(&status, namesCondition(problem), now)
	set(&status, establishedCondition(d, problem), now)
	if c := approval(d); c != nil {
		set(&status, *c, now)
	}
	return status, !sameStatus(status, d.Status)
}

// set keeps the time of a condition whose status stays.
func set(status *apiextensionsv1.CustomResourceDefinitionStatus, c apiextensionsv1.CustomResourceDefinitionCondition, now metav1.Time) {
	c.LastTransitionTime = now
	for i, old := range status.Conditions {
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		status.Conditions[i] = c
		return
	}
	status.Conditions = append(status.Conditions, c)
}

// nameProblem is a name that cannot be had.
type nameProblem struct{ reason, message string }

// acceptNames takes over each name that is free; of several problems it tells
// the last.
func acceptNames(wanted, has apiextensionsv1.CustomResourceDefinitionNames, others Taken) (apiextensionsv1.CustomResourceDefinitionNames, *nameProblem) {
	var problem *nameProblem
	accept := func(reason string, taken map[string]bool, wanted string, into *string) {
		if wanted != *into && taken[wanted] {
			problem = &nameProblem{reason, inUse(wanted)}
			return
		}
		*into = wanted
	}
	accept("PluralConflict", others.resources, wanted.Plural, &has.Plural)
	accept("SingularConflict", others.resources, wanted.Singular, &has.Singular)
	if conflicts := shortNameConflicts(wanted, has, others); conflicts != "" {
		problem = &nameProblem{"ShortNamesConflict", conflicts}
	} else {
		has.ShortNames = wanted.ShortNames
	}
	accept("KindConflict", others.kinds, wanted.Kind, &has.Kind)
	accept("ListKindConflict", others.kinds, wanted.ListKind, &has.ListKind)
	has.Categories = wanted.Categories
	return has, problem
}

func inUse(name string) string { return fmt.Sprintf("%q is already in use", name) }

func shortNameConflicts(wanted, has apiextensionsv1.CustomResourceDefinitionNames, others Taken) string {
	var conflicts []string
	for _, name := range wanted.ShortNames {
		if others.resources[name] && !slices.Contains(has.ShortNames, name) {
			conflicts = append(conflicts, inUse(name))
		}
	}
	if len(conflicts) > 1 {
		return "[" + strings.Join(conflicts, ", ") + "]"
	}
	return strings.Join(conflicts, "")
}

func namesCondition(problem *nameProblem) apiextensionsv1.CustomResourceDefinitionCondition {
	c := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts", Message: "no conflicts found",
	}
	if problem != nil {
		c.Status, c.Reason, c.Message = apiextensionsv1.ConditionFalse, problem.reason, problem.message
	}
	return c
}

// establishedCondition never takes back what was established.
func establishedCondition(d *Definition, problem *nameProblem) apiextensionsv1.CustomResourceDefinitionCondition {
	for _, c := range d.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return c
		}
	}
	if problem != nil {
		return apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: "NotAccepted", Message: "not all names are accepted",
		}
	}
	return apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue, Reason: "InitialNamesAccepted", Message: "the initial names have been accepted",
	}
}

// approval is about groups that are Kubernetes' own.
func approval(d *Definition) *apiextensionsv1.CustomResourceDefinitionCondition {
	if !apihelpers.IsProtectedCommunityGroup(d.Spec.Group) {
		return nil
	}
	state, reason := apihelpers.GetAPIApprovalState(d.Metadata.Annotations)
	c := &apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.KubernetesAPIApprovalPolicyConformant, Status: apiextensionsv1.ConditionFalse, Message: reason,
	}
	switch state {
	case apihelpers.APIApprovalInvalid:
		c.Reason = "InvalidAnnotation"
	case apihelpers.APIApprovalMissing:
		c.Reason = "MissingAnnotation"
	case apihelpers.APIApproved:
		c.Status, c.Reason = apiextensionsv1.ConditionTrue, "ApprovedAnnotation"
	case apihelpers.APIApprovalBypassed:
		c.Reason = "UnapprovedAnnotation"
	default:
		c.Status, c.Reason = apiextensionsv1.ConditionUnknown, "UnknownAnnotation"
	}
	return c
}

func sameNames(a, b apiextensionsv1.CustomResourceDefinitionNames) bool {
	return a.Plural == b.Plural && a.Singular == b.Singular && a.Kind == b.Kind && a.ListKind == b.ListKind &&
		slices.Equal(a.ShortNames, b.ShortNames) && slices.Equal(a.Categories, b.Categories)
}

func sameStatus(a, b apiextensionsv1.CustomResourceDefinitionStatus) bool {
	return sameNames(a.AcceptedNames, b.AcceptedNames) && slices.EqualFunc(a.Conditions, b.Conditions,
		func(x, y apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason && x.Message == y.Message
		})
}

// Terminate returns the status of a definition that is being deleted, with the
// reason why it is still or no longer there.
func Terminate(status apiextensionsv1.CustomResourceDefinitionStatus, done bool, reason, message string, now metav1.Time) apiextensionsv1.CustomResourceDefinitionStatus {
	status = *status.DeepCopy()
	c := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, Reason: reason, Message: message,
	}
	if done {
		c.Status = apiextensionsv1.ConditionFalse
	}
	set(&status, c, now)
	return status
}
