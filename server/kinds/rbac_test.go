package kinds

import "testing"

func TestRoles(t *testing.T) {
	runPolicyCases(t, map[string]policyCase{
		"no rules": {resource: "roles", doc: `{}`},
		"an empty rule": {resource: "roles", doc: `{"rules":[{}]}`, want: []string{
			`rules[0].verbs: Required value: verbs must contain at least one value`,
			`rules[0].apiGroups: Required value: resource rules must supply at least one api group`,
			`rules[0].resources: Required value: resource rules must supply at least one resource`,
		}},
		"paths in a namespace": {resource: "roles", doc: `{"rules":[{"verbs":["get"],"nonResourceURLs":["/x"],"resources":["pods"]}]}`, want: []string{
			`rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs`,
			`rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs`,
		}},
		"paths in the cluster": {resource: "clusterroles", doc: `{"rules":[{"verbs":["get"],"nonResourceURLs":["/x"]}]}`},
		"aggregated from nothing": {resource: "clusterroles", doc: `{"aggregationRule":{}}`, want: []string{
			`aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil`,
		}},
		"aggregated from what cannot be": {resource: "clusterroles", doc: `{"aggregationRule":{"clusterRoleSelectors":[{"matchExpressions":[{"key":"a","operator":"X"}]}]}}`, want: []string{
			`aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: "X": not a valid selector operator`,
			`aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.`,
		}},
		"names of several resources": {resource: "clusterroles", doc: `{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["a","b"],"resourceNames":["x"]}]}`},
	})
}

func TestRoleBindings(t *testing.T) {
	const ref = `"roleRef":{"kind":"ClusterRole","name":"r"}`
	runPolicyCases(t, map[string]policyCase{
		"subjects without names": {resource: "rolebindings", doc: `{` + ref + `,"subjects":[{"kind":"User"},{"kind":"ServiceAccount","apiGroup":"x"}]}`, want: []string{
			`subjects[0].name: Required value`,
			`subjects[1].name: Required value`,
			`subjects[1].apiGroup: Unsupported value: "x": supported values: ""`,
		}},
		"an account without a namespace": {resource: "clusterrolebindings", doc: `{` + ref + `,"subjects":[{"kind":"ServiceAccount","name":"a"}]}`, want: []string{
			`subjects[0].namespace: Required value`,
		}},
		"a role of a namespace for the cluster": {resource: "clusterrolebindings", doc: `{"roleRef":{"kind":"Role","name":"a/b"}}`, want: []string{
			`roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"`,
			`roleRef.name: Invalid value: "a/b": may not contain '/'`,
		}},
		"another role": {
			resource: "rolebindings", doc: `{` + ref + `}`, old: `{"roleRef":{"kind":"ClusterRole","name":"s"}}`, want: []string{
				`roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"r"}: cannot change roleRef`,
			},
		},
		"other subjects": {
			resource: "clusterrolebindings", doc: `{` + ref + `,"subjects":[{"kind":"Group","name":"g"}]}`, old: `{` + ref + `}`,
		},
	})
}

func TestRBACNames(t *testing.T) {
	for name, wrong := range map[string]bool{"system:node": false, "A b": false, "a/b": true, "50%": true, "..": true} {
		if got := rbacName(name, false); (len(got) > 0) != wrong {
			t.Errorf("%q: %v", name, got)
		}
	}
}
