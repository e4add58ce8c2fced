package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetCondition sets one of the conditions of an object's status, of the object's
// present generation, and reports whether that changes anything. The time of the
// transition changes with the status only.
//
//	changed := controller.SetCondition(foo, &foo.Status.Conditions, "Ready", metav1.ConditionFalse, "Waiting", "%d of %d", n, all)
func SetCondition(of metav1.Object, conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, format string, args ...any) bool {
	return meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...), ObservedGeneration: of.GetGeneration(),
	})
}
