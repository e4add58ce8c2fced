package evenkeeltest_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestConditionsOfTypedObjects(t *testing.T) {
	d := &appsv1.Deployment{}
	d.Generation, d.Status.ObservedGeneration = 3, 2
	d.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue},
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "TooFew", Message: "1 of 3"},
	}
	for name, test := range map[string]struct {
		check func(*appsv1.Deployment) error
		want  string // part of what is said, or nothing
	}{
		"as it is":               {evenkeeltest.Condition[*appsv1.Deployment]("Available", "False"), ""},
		"with its reason":        {evenkeeltest.Condition[*appsv1.Deployment]("Available", "False", evenkeeltest.Reason("TooFew")), ""},
		"another type":           {evenkeeltest.Condition[*appsv1.Deployment]("Ready", metav1.ConditionTrue), "it has no condition Ready"},
		"another status":         {evenkeeltest.Condition[*appsv1.Deployment]("Available", metav1.ConditionTrue), "Available is False, not True (TooFew: 1 of 3)"},
		"another reason":         {evenkeeltest.Condition[*appsv1.Deployment]("Available", "False", evenkeeltest.Reason("Late")), "for the reason TooFew, not Late"},
		"of an older generation": {evenkeeltest.Condition[*appsv1.Deployment]("Available", "False", evenkeeltest.Current()), "of generation 2, not of 3"},
	} {
		expectSaid(t, name, test.check(d), test.want)
	}
	d.Status.ObservedGeneration = 3
	expectSaid(t, "of the present generation", evenkeeltest.Condition[*appsv1.Deployment]("Available", "False", evenkeeltest.Current())(d), "")
	expectSaid(t, "no status", evenkeeltest.Condition[*corev1.ConfigMap]("Ready", "True")(config("a")), "it has no condition Ready")
}

func TestConditionsOfOtherObjects(t *testing.T) {
	widget := func(observed any) *unstructured.Unstructured {
		condition := map[string]any{"type": "Ready", "status": "True"}
		if observed != nil {
			condition["observedGeneration"] = observed
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"generation": int64(2)},
			"status":   map[string]any{"observedGeneration": int64(1), "conditions": []any{condition}},
		}}
	}
	ready := evenkeeltest.Condition[*unstructured.Unstructured]("Ready", "True", evenkeeltest.Current())
	expectSaid(t, "the condition's own generation", ready(widget(int64(2))), "")
	expectSaid(t, "an older one", ready(widget(int64(1))), "of generation 1, not of 2")
	expectSaid(t, "the status's", ready(widget(nil)), "of generation 1, not of 2")
	expectSaid(t, "conditions of another form", ready(&unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"conditions": "none"},
	}}), "conditions")
}

func expectSaid(t *testing.T, name string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v", name, err)
	}
}
