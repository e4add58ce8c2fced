package kinds

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// systemPriorityPrefix starts the names of the classes of the system.
	systemPriorityPrefix = "system-"
	// highestUserPriority is the largest value of any other class.
	highestUserPriority = int32(1_000_000_000)
)

// systemPriorities are the values of the classes of the system.
var systemPriorities = map[string]int32{
	"system-cluster-critical": 2 * highestUserPriority,
	"system-node-critical":    2*highestUserPriority + 1000,
}

func priorityClassKind() *Kind {
	return &Kind{
		GVK:        schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"),
		Resource:   "priorityclasses",
		Singular:   "priorityclass",
		ShortNames: []string{"pc"},
		New:        newOf[schedulingv1.PriorityClass],
		NewList:    newOf[schedulingv1.PriorityClassList],

		Default: each(func(c *schedulingv1.PriorityClass) {
			setDefault(&c.PreemptionPolicy, corev1.PreemptLowerPriority)
		}),
		// The generation is set once and never counted.
		PrepareCreate: each(func(c *schedulingv1.PriorityClass) { c.Generation = 1 }),
		PrepareUpdate: eachPair(func(c, old *schedulingv1.PriorityClass) { c.Generation = old.Generation }),

		ValidateCreate: check(validatePriorityClass),
		ValidateUpdate: checkPair(validatePriorityClassUpdate),

		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			integerColumn("Value", "Priority of pods of the class."),
			booleanColumn("Global-Default", "Whether pods without a class get this one."),
			ageColumn(),
			column("PreemptionPolicy", "Whether pods of the class may displace others."),
		},
		Cells: cells(func(c *schedulingv1.PriorityClass, now metav1.Time) []any {
			preemption := ""
			if c.PreemptionPolicy != nil {
				preemption = string(*c.PreemptionPolicy)
			}
			return []any{
				c.Name, int64(c.Value), c.GlobalDefault,
				Age(c.CreationTimestamp, now), preemption,
			}
		}),
	}
}

// booleanColumn is a column of truth values.
func booleanColumn(name, description string) metav1.TableColumnDefinition {
	c := column(name, description)
	c.Type = "boolean"
	return c
}

func validatePriorityClass(c *schedulingv1.PriorityClass) field.ErrorList {
	var p problems
	if strings.HasPrefix(c.Name, systemPriorityPrefix) {
		if wrong := systemPriorityProblem(c); wrong != "" {
			p.forbidden(field.NewPath("metadata", "name"),
				"priority class names with '"+systemPriorityPrefix+"' prefix are reserved for system use only. error: "+wrong)
		}
	} else if c.Value > highestUserPriority {
		p.forbidden(field.NewPath("value"),
			fmt.Sprintf("maximum allowed value of a user defined priority is %d", highestUserPriority))
	}
	if policy := c.PreemptionPolicy; policy != nil {
		chosen(&p, field.NewPath("preemptionPolicy"), *policy, corev1.PreemptLowerPriority, corev1.PreemptNever)
	}
	return p.list
}

// systemPriorityProblem says why a class is not one of the system's.
func systemPriorityProblem(c *schedulingv1.PriorityClass) string {
	value, known := systemPriorities[c.Name]
	switch {
	case !known:
		return c.Name + " is not a known system priority class"
	case c.Value != value:
		return fmt.Sprintf("value of %s PriorityClass must be %d", c.Name, value)
	case c.GlobalDefault:
		return fmt.Sprintf("globalDefault of %s PriorityClass must be false", c.Name)
	}
	return ""
}

func validatePriorityClassUpdate(c, old *schedulingv1.PriorityClass) field.ErrorList {
	var p problems
	if c.Value != old.Value {
		p.forbidden(field.NewPath("value"), "may not be changed in an update.")
	}
	p.add(apivalidation.ValidateImmutableField(c.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
	return p.list
}
