package custom_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/server/custom"
	"github.com/even-keel/evenkeel/server/schema"
)

var now = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

// define reads a definition that wants names.
func define(t *testing.T, names apiextensionsv1.CustomResourceDefinitionNames, change ...func(*apiextensionsv1.CustomResourceDefinition)) *custom.Definition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: names.Plural + ".example.com", UID: "u", Generation: 1},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped, Names: names,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
		},
	}
	for _, c := range change {
		c(crd)
	}
	text, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	d, err := custom.Read(func() []byte { return text }, &schema.Pool{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func named(plural, singular, kind string, short ...string) apiextensionsv1.CustomResourceDefinitionNames {
	return apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: singular, Kind: kind, ListKind: kind + "List", ShortNames: short}
}

// accepted gives a definition names, as if they had been decided on before.
func accepted(names apiextensionsv1.CustomResourceDefinitionNames, established bool) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Status.AcceptedNames = names
		if established {
			crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts", Message: "no conflicts found"},
				{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue, Reason: "InitialNamesAccepted", Message: "the initial names have been accepted"},
			}
		}
	}
}

func TestDecide(t *testing.T) {
	pears := named("pears", "pear", "Pear", "pr", "p")
	none := apiextensionsv1.CustomResourceDefinitionNames{}
	cases := map[string]struct {
		wants, has  apiextensionsv1.CustomResourceDefinitionNames
		established bool
		reason, say string
		// serves is whether it is established after.
		serves  bool
		accepts apiextensionsv1.CustomResourceDefinitionNames
	}{
		"all names are free":         {named("figs", "fig", "Fig", "f"), none, false, "NoConflicts", "no conflicts found", true, named("figs", "fig", "Fig", "f")},
		"the singular is a plural":   {named("figs", "pears", "Fig"), none, false, "SingularConflict", `"pears" is already in use`, false, named("figs", "", "Fig")},
		"the plural is a short name": {named("p", "fig", "Fig"), none, false, "PluralConflict", `"p" is already in use`, false, named("", "fig", "Fig")},
		"two short names are taken":  {named("figs", "fig", "Fig", "pr", "f", "p"), none, false, "ShortNamesConflict", `["pr" is already in use, "p" is already in use]`, false, named("figs", "fig", "Fig")},
		"the kind is taken": {
			apiextensionsv1.CustomResourceDefinitionNames{Plural: "figs", Singular: "fig", Kind: "Pear", ListKind: "FigList"}, none, false,
			"KindConflict", `"Pear" is already in use`, false, apiextensionsv1.CustomResourceDefinitionNames{Plural: "figs", Singular: "fig", ListKind: "FigList"},
		},
		"the kind is a list kind": {
			apiextensionsv1.CustomResourceDefinitionNames{Plural: "figs", Singular: "fig", Kind: "PearList", ListKind: "FigList"}, none, false,
			"KindConflict", `"PearList" is already in use`, false, apiextensionsv1.CustomResourceDefinitionNames{Plural: "figs", Singular: "fig", ListKind: "FigList"},
		},
		"what is established stays so": {named("figs", "fig", "Pear"), named("figs", "fig", "Fig"), true, "ListKindConflict", `"PearList" is already in use`, true, named("figs", "fig", "Fig")},
		"names may change":             {named("figs", "figlet", "Figlet"), named("figs", "fig", "Fig"), true, "NoConflicts", "no conflicts found", true, named("figs", "figlet", "Figlet")},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			others := custom.TakenBy([]*custom.Definition{define(t, pears, accepted(pears, true))})
			d := define(t, test.wants, accepted(test.has, test.established))
			before, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			status, changed := custom.Decide(d, others, now)
			if after, err := json.Marshal(d); err != nil || string(after) != string(before) {
				t.Errorf("deciding changed the definition to %s", after)
			}
			if c := find(status, apiextensionsv1.NamesAccepted); c.Reason != test.reason || c.Message != test.say {
				t.Errorf("%s: %s", c.Reason, c.Message)
			}
			if c := find(status, apiextensionsv1.Established); (c.Status == apiextensionsv1.ConditionTrue) != test.serves {
				t.Errorf("established: %s, %s", c.Status, c.Reason)
			}
			if got := status.AcceptedNames; got.Plural != test.accepts.Plural || got.Singular != test.accepts.Singular || got.Kind != test.accepts.Kind ||
				got.ListKind != test.accepts.ListKind || !slices.Equal(got.ShortNames, test.accepts.ShortNames) {
				t.Errorf("accepted %+v", got)
			}
			if !changed {
				t.Error("nothing is said to have changed")
			}
			// To decide again changes nothing.
			d.Status = status
			if _, changed := custom.Decide(d, others, metav1.Now()); changed {
				t.Error("what has been decided is not settled")
			}
		})
	}
}

func find(s apiextensionsv1.CustomResourceDefinitionStatus, kind apiextensionsv1.CustomResourceDefinitionConditionType) apiextensionsv1.CustomResourceDefinitionCondition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return apiextensionsv1.CustomResourceDefinitionCondition{}
}

// TestTimesOfConditions: a condition keeps its time while its status stays.
func TestTimesOfConditions(t *testing.T) {
	d := define(t, named("figs", "fig", "Fig"))
	d.Status, _ = custom.Decide(d, custom.TakenBy(nil), now)
	later := metav1.NewTime(now.Add(time.Hour))
	d.Status = custom.Terminate(d.Status, false, "InstanceDeletionInProgress", "", later)
	done := custom.Terminate(d.Status, true, "InstanceDeletionCompleted", "", metav1.NewTime(later.Add(time.Hour)))
	if c := find(done, apiextensionsv1.NamesAccepted); !c.LastTransitionTime.Equal(&now) {
		t.Errorf("names were accepted at %s", c.LastTransitionTime)
	}
	if c := find(done, apiextensionsv1.Terminating); c.Status != apiextensionsv1.ConditionFalse || c.LastTransitionTime.Equal(&later) {
		t.Errorf("terminating: %+v", c)
	}
	if c := find(d.Status, apiextensionsv1.Terminating); c.Status != apiextensionsv1.ConditionTrue {
		t.Errorf("Terminate changed what it was given: %+v", c)
	}
}

// TestKubernetesOwnGroups need a word of approval, and tell of it.
func TestKubernetesOwnGroups(t *testing.T) {
	for annotation, reason := range map[string]string{
		"": "MissingAnnotation", "maybe": "InvalidAnnotation", "unapproved, testing": "UnapprovedAnnotation",
		"https://github.com/kubernetes/kubernetes/pull/1": "ApprovedAnnotation",
	} {
		d := define(t, named("figs", "fig", "Fig"), func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Group = "fruit.k8s.io"
			if annotation != "" {
				crd.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: annotation}
			}
		})
		status, _ := custom.Decide(d, custom.TakenBy(nil), now)
		if c := find(status, apiextensionsv1.KubernetesAPIApprovalPolicyConformant); c.Reason != reason {
			t.Errorf("%q: %s, not %s", annotation, c.Reason, reason)
		}
	}
}
