package evenkeeltest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/even-keel/evenkeel/client"
)

// ConditionOption says what more [Condition] is to look at.
type ConditionOption func(obj, condition map[string]any) error

// Condition is a check for [Eventually]: an object has a condition of a type in
// its status.conditions, and this is its status. It knows objects of all kinds,
// typed or not.
func Condition[T client.Object](conditionType string, status metav1.ConditionStatus, more ...ConditionOption) func(T) error {
	return func(typed T) error {
		obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			return fmt.Errorf("read its conditions: %w", err)
		}
		condition, err := conditionOf(obj, conditionType)
		if err != nil {
			return err
		}
		if condition["status"] != string(status) {
			return fmt.Errorf("%s is %v, not %s (%v: %v)", conditionType, condition["status"], status, condition["reason"], condition["message"])
		}
		for _, check := range more {
			if err := check(obj, condition); err != nil {
				return fmt.Errorf("%s is %s, but %w", conditionType, status, err)
			}
		}
		return nil
	}
}

func conditionOf(obj map[string]any, conditionType string) (map[string]any, error) {
	all, _, err := unstructured.NestedSlice(obj, "status", "conditions")
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if m, ok := c.(map[string]any); ok && m["type"] == conditionType {
			return m, nil
		}
	}
	return nil, fmt.Errorf("it has no condition %s", conditionType)
}

// Reason wants the condition to have a reason.
func Reason(want string) ConditionOption {
	return func(_, condition map[string]any) error {
		if condition["reason"] != want {
			return fmt.Errorf("for the reason %v, not %s", condition["reason"], want)
		}
		return nil
	}
}

// Current wants the condition to be about the object's present generation: by its
// own observedGeneration or, if it has none, by that of the status.
func Current() ConditionOption {
	return func(obj, condition map[string]any) error {
		generation, _, _ := unstructured.NestedInt64(obj, "metadata", "generation")
		observed, found, _ := unstructured.NestedInt64(condition, "observedGeneration")
		if !found {
			observed, _, _ = unstructured.NestedInt64(obj, "status", "observedGeneration")
		}
		if observed != generation {
			return fmt.Errorf("of generation %d, not of %d", observed, generation)
		}
		return nil
	}
}
