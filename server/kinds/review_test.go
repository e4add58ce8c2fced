package kinds

import "testing"

func TestAccessReviews(t *testing.T) {
	runPolicyCases(t, map[string]policyCase{
		"empty": {resource: "subjectaccessreviews", doc: `{"metadata":{"name":"x"}}`, want: []string{
			`spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified`,
			`spec.user: Invalid value: "": at least one of user or group must be specified`,
			`metadata: Invalid value: {"name":"x"}: must be empty`,
		}},
		"both questions": {resource: "selfsubjectaccessreviews", doc: `{"spec":{"resourceAttributes":{},"nonResourceAttributes":{"path":"/x","verb":"get"}}}`, want: []string{
			`spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: cannot be specified in combination with resourceAttributes`,
		}},
		"another namespace": {resource: "localsubjectaccessreviews", doc: `{"metadata":{"namespace":"a"},"spec":{"groups":["g"],"resourceAttributes":{"namespace":"b"}}}`, want: []string{
			`spec.resourceAttributes.namespace: Invalid value: "b": must match metadata.namespace`,
		}},
		"a path in a namespace": {resource: "localsubjectaccessreviews", doc: `{"metadata":{"namespace":"a","name":"n"},"spec":{"user":"u","nonResourceAttributes":{}}}`, want: []string{
			`spec.nonResourceAttributes: Invalid value: {"Path":"","Verb":""}: disallowed on this kind of request`,
			`metadata: Invalid value: {"name":"n","namespace":"a"}: must be empty except for namespace`,
		}},
		"selectors": {resource: "selfsubjectaccessreviews", doc: `{"spec":{"resourceAttributes":{"fieldSelector":{},"labelSelector":{"rawSelector":"a","requirements":[{"key":"a","operator":"New"}]}}}}`, want: []string{
			`spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required`,
			`spec.resourceAttributes.labelSelector.rawSelector: Invalid value: "a": may not specified at the same time as requirements`,
		}},
		"rules": {resource: "selfsubjectrulesreviews", doc: `{"spec":{"namespace":"x"}}`},
	})
}
