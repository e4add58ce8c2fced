package kinds

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The types below are values as error messages quote them: with the names of
// the Go fields, where the API has names of its own.

type shownRoleRef struct{ APIGroup, Kind, Name string }

type shownParentReference struct{ Group, Resource, Namespace, Name string }

type shownServiceCIDRSpec struct{ CIDRs []string }

type shownNonResourceAttributes struct{ Path, Verb string }

type shownAuditAnnotation struct{ Key, ValueExpression string }

type shownToleration struct {
	Key               string
	Operator          corev1.TolerationOperator
	Value             string
	Effect            corev1.TaintEffect
	TolerationSeconds *int64
}

type shownDisruptionBudgetSpec struct {
	MinAvailable               *intstr.IntOrString
	Selector                   *metav1.LabelSelector
	MaxUnavailable             *intstr.IntOrString
	UnhealthyPodEvictionPolicy *policyv1.UnhealthyPodEvictionPolicyType
}
