package kinds

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// policyCase is an object of a kind and what is wrong with it; old makes it an
// update.
type policyCase struct {
	resource, doc, old string
	want               []string
}

func runPolicyCases(t *testing.T, tests map[string]policyCase) {
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k := policyKindOf(t, tt.resource)
			obj := policyObject(t, k, tt.doc)
			var got []string
			if tt.old == "" {
				got = policyCauses(policyCreateErrors(k, obj))
			} else {
				got = policyCauses(policyUpdateErrors(k, obj, policyObject(t, k, tt.old)))
			}
			want := slices.Sorted(slices.Values(tt.want))
			if d := cmp.Diff(append([]string{}, want...), got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDisruptionBudgets(t *testing.T) {
	runPolicyCases(t, map[string]policyCase{
		"empty": {resource: "poddisruptionbudgets", doc: `{}`},
		"both limits": {resource: "poddisruptionbudgets", doc: `{"spec":{"minAvailable":1,"maxUnavailable":"150%"}}`, want: []string{
			`spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":"150%","UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set`,
			`spec.maxUnavailable: Invalid value: "150%": must not be greater than 100%`,
		}},
		"bad limits": {resource: "poddisruptionbudgets", doc: `{"spec":{"minAvailable":-1,"unhealthyPodEvictionPolicy":"Never"}}`, want: []string{
			`spec.minAvailable: Invalid value: -1: must be greater than or equal to 0`,
			`spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: "AlwaysAllow", "IfHealthyBudget"`,
		}},
	})
}

func TestPriorityClasses(t *testing.T) {
	runPolicyCases(t, map[string]policyCase{
		"of the system": {resource: "priorityclasses", doc: `{"metadata":{"name":"system-node-critical"},"value":2000001000}`},
		"with a value of the system's": {resource: "priorityclasses", doc: `{"metadata":{"name":"system-node-critical"},"value":1}`, want: []string{
			`metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: value of system-node-critical PriorityClass must be 2000001000`,
		}},
		"named like the system's": {resource: "priorityclasses", doc: `{"metadata":{"name":"system-x"}}`, want: []string{
			`metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-x is not a known system priority class`,
		}},
		"too high": {resource: "priorityclasses", doc: `{"metadata":{"name":"x"},"value":1000000001,"preemptionPolicy":"Y"}`, want: []string{
			`value: Forbidden: maximum allowed value of a user defined priority is 1000000000`,
			`preemptionPolicy: Unsupported value: "Y": supported values: "PreemptLowerPriority", "Never"`,
		}},
		"changed": {
			resource: "priorityclasses", doc: `{"metadata":{"name":"x"},"value":2,"preemptionPolicy":"Never","description":"d"}`,
			old: `{"metadata":{"name":"x"},"value":1}`, want: []string{
				`value: Forbidden: may not be changed in an update.`,
				`preemptionPolicy: Invalid value: "Never": field is immutable`,
			},
		},
	})
}

func TestRuntimeClasses(t *testing.T) {
	runPolicyCases(t, map[string]policyCase{
		"valid": {resource: "runtimeclasses", doc: `{"handler":"runc","overhead":{"podFixed":{"cpu":"1m"}},"scheduling":{"nodeSelector":{"a":"b"}}}`},
		"empty": {resource: "runtimeclasses", doc: `{}`, want: []string{`handler: Required value`}},
		"tolerated twice": {resource: "runtimeclasses", doc: `{"handler":"h","scheduling":{"tolerations":[{"key":"a","operator":"Exists","effect":"NoExecute"},{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":1}]}}`, want: []string{
			`scheduling.tolerations[1]: Duplicate value: {"Key":"a","Operator":"Exists","Value":"","Effect":"NoExecute","TolerationSeconds":1}`,
		}},
		"changed": {
			resource: "runtimeclasses", doc: `{"handler":"kata"}`, old: `{"handler":"runc"}`,
			want: []string{`handler: Invalid value: "kata": field is immutable`},
		},
	})
	k := policyKindOf(t, "runtimeclasses")
	obj := policyObject(t, k, `{"handler":"h","scheduling":{"nodeSelector":{"beta.kubernetes.io/os":"linux","a":"b"}}}`)
	want := []string{`scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead`}
	if d := cmp.Diff(want, k.Warnings(obj, nil)); d != "" {
		t.Error(d)
	}
}
