package kinds

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func disruptionBudgetKind() *Kind {
	return &Kind{
		GVK:        policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		Resource:   "poddisruptionbudgets",
		Singular:   "poddisruptionbudget",
		ShortNames: []string{"pdb"},
		Namespaced: true,
		New:        newOf[policyv1.PodDisruptionBudget],
		NewList:    newOf[policyv1.PodDisruptionBudgetList],

		HasStatus:     true,
		HasGeneration: true,
		NeedsRevision: true,

		Validate:       check(validateDisruptionBudget),
		ValidateStatus: checkPair(validateDisruptionBudgetStatus),

		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Min Available", "Pods that must stay available."),
			column("Max Unavailable", "Pods that may be unavailable."),
			integerColumn("Allowed Disruptions", "Pods that may be disrupted now."),
			ageColumn(),
		},
		Cells: cells(func(b *policyv1.PodDisruptionBudget, now metav1.Time) []any {
			return []any{
				b.Name, shownLimit(b.Spec.MinAvailable), shownLimit(b.Spec.MaxUnavailable),
				int64(b.Status.DisruptionsAllowed), Age(b.CreationTimestamp, now),
			}
		}),
	}
}

// integerColumn is a column of numbers.
func integerColumn(name, description string) metav1.TableColumnDefinition {
	c := column(name, description)
	c.Type = "integer"
	return c
}

func shownLimit(n *intstr.IntOrString) string {
	if n == nil {
		return "N/A"
	}
	return n.String()
}

func validateDisruptionBudget(b *policyv1.PodDisruptionBudget) field.ErrorList {
	var p problems
	path, spec := field.NewPath("spec"), &b.Spec
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		p.invalid(path, shownDisruptionBudgetSpec{
			spec.MinAvailable, spec.Selector, spec.MaxUnavailable, spec.UnhealthyPodEvictionPolicy,
		}, "minAvailable and maxUnavailable cannot be both set")
	}
	validateDisruptionLimit(&p, spec.MinAvailable, path.Child("minAvailable"))
	validateDisruptionLimit(&p, spec.MaxUnavailable, path.Child("maxUnavailable"))
	validateSelector(&p, spec.Selector, path.Child("selector"))
	if spec.UnhealthyPodEvictionPolicy != nil {
		oneOf(&p, path.Child("unhealthyPodEvictionPolicy"), *spec.UnhealthyPodEvictionPolicy,
			policyv1.AlwaysAllow, policyv1.IfHealthyBudget)
	}
	return p.list
}

func validateDisruptionLimit(p *problems, limit *intstr.IntOrString, path *field.Path) {
	if limit == nil {
		return
	}
	p.intOrPercent(path, *limit)
	p.atMostAll(path, *limit)
}

func validateDisruptionBudgetStatus(b, _ *policyv1.PodDisruptionBudget) field.ErrorList {
	var p problems
	path, s := field.NewPath("status"), &b.Status
	p.add(metav1validation.ValidateConditions(s.Conditions, path.Child("conditions"))...)
	p.nonNegative(path.Child("disruptionsAllowed"), int64(s.DisruptionsAllowed))
	p.nonNegative(path.Child("currentHealthy"), int64(s.CurrentHealthy))
	p.nonNegative(path.Child("desiredHealthy"), int64(s.DesiredHealthy))
	p.nonNegative(path.Child("expectedPods"), int64(s.ExpectedPods))
	return p.list
}
