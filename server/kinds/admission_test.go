package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdmissionWebhooks(t *testing.T) {
	const good = `"sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://a"}`
	runPolicyCases(t, map[string]policyCase{
		"empty": {resource: "validatingwebhookconfigurations", doc: `{"webhooks":[{}]}`, want: []string{
			`webhooks[0].name: Required value`,
			`webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun`,
			`webhooks[0].clientConfig: Required value: exactly one of url or service is required`,
			`webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1`,
		}},
		"bad values": {resource: "mutatingwebhookconfigurations", doc: `{"webhooks":[{"name":"a","failurePolicy":"a","matchPolicy":"b","sideEffects":"Some","timeoutSeconds":31,
			"reinvocationPolicy":"c","clientConfig":{"url":"http://u@h/p?q#f"},"admissionReviewVersions":["v2","v2"]}]}`, want: []string{
			`webhooks[0].name: Invalid value: "a": should be a domain with at least three segments separated by dots`,
			`webhooks[0].failurePolicy: Unsupported value: "a": supported values: "Fail", "Ignore"`,
			`webhooks[0].matchPolicy: Unsupported value: "b": supported values: "Equivalent", "Exact"`,
			`webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"`,
			`webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds`,
			`webhooks[0].reinvocationPolicy: Unsupported value: "c": supported values: "IfNeeded", "Never"`,
			`webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`,
			`webhooks[0].clientConfig.url: Invalid value: "u": user information is not permitted in the URL`,
			`webhooks[0].clientConfig.url: Invalid value: "q": query parameters are not permitted in the URL`,
			`webhooks[0].clientConfig.url: Invalid value: "f": fragments are not permitted in the URL`,
			`webhooks[0].admissionReviewVersions[1]: Invalid value: "v2": duplicate version`,
			`webhooks[0].admissionReviewVersions: Invalid value: ["v2","v2"]: must include at least one of v1, v1beta1`,
		}},
		"a service": {resource: "validatingwebhookconfigurations", doc: `{"webhooks":[{"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v1"],
			"clientConfig":{"service":{"path":"x//y","port":0}}}]}`, want: []string{
			`webhooks[0].clientConfig.service.name: Required value`,
			`webhooks[0].clientConfig.service.namespace: Required value`,
			`webhooks[0].clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive`,
			`webhooks[0].clientConfig.service.path: Invalid value: "x//y": must start with a '/'`,
			`webhooks[0].clientConfig.service.path: Invalid value: "x//y": segment[0] may not be empty`,
			`webhooks[0].clientConfig.service.path: Invalid value: "x//y": segment[1] may not be empty`,
		}},
		"twice the same name": {resource: "validatingwebhookconfigurations", doc: `{"webhooks":[{"name":"a.b.c",` + good + `},{"name":"a.b.c",` + good + `}]}`, want: []string{
			`webhooks[1].name: Duplicate value: "a.b.c"`,
		}},
		"rules": {resource: "validatingwebhookconfigurations", doc: `{"webhooks":[{"name":"a.b.c",` + good + `,"rules":[
			{},
			{"operations":["*","X"],"apiGroups":["*",""],"apiVersions":["*",""],"resources":["*","pods","a/*","a/b","*/c","d/c"],"scope":"x"},
			{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*",""]}]}]}`, want: []string{
			`webhooks[0].rules[0].operations: Required value`,
			`webhooks[0].rules[0].apiGroups: Required value`,
			`webhooks[0].rules[0].apiVersions: Required value`,
			`webhooks[0].rules[0].resources: Required value`,
			`webhooks[0].rules[1].operations: Invalid value: ["*","X"]: if '*' is present, must not specify other operations`,
			`webhooks[0].rules[1].operations[1]: Unsupported value: "X": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"`,
			`webhooks[0].rules[1].apiGroups: Invalid value: ["*",""]: if '*' is present, must not specify other API groups`,
			`webhooks[0].rules[1].apiVersions: Invalid value: ["*",""]: if '*' is present, must not specify other API versions`,
			`webhooks[0].rules[1].apiVersions[1]: Required value`,
			`webhooks[0].rules[1].resources[3]: Invalid value: "a/b": if 'a/*' is present, must not specify a/b`,
			`webhooks[0].rules[1].resources[5]: Invalid value: "d/c": if '*/c' is present, must not specify d/c`,
			`webhooks[0].rules[1].resources: Invalid value: ["*","pods","a/*","a/b","*/c","d/c"]: if '*' is present, must not specify other resources without subresources`,
			`webhooks[0].rules[1].scope: Unsupported value: "x": supported values: "*", "Cluster", "Namespaced"`,
			`webhooks[0].rules[2].resources[1]: Required value`,
			`webhooks[0].rules[2].resources: Invalid value: ["*/*",""]: if '*/*' is present, must not specify other resources`,
		}},
		"match conditions": {resource: "validatingwebhookconfigurations", doc: `{"webhooks":[{"name":"a.b.c",` + good + `,"matchConditions":[{},{"name":"n","expression":"true"},{"name":"n","expression":"true"}]}]}`, want: []string{
			`webhooks[0].matchConditions[0].expression: Required value`,
			`webhooks[0].matchConditions[0].name: Required value`,
			`webhooks[0].matchConditions[2].name: Duplicate value: "n"`,
		}},
	})
}

const admissionRule = `{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}`

func TestValidatingPolicies(t *testing.T) {
	const match = `"matchConstraints":{"resourceRules":[` + admissionRule + `]}`
	runPolicyCases(t, map[string]policyCase{
		"valid": {resource: "validatingadmissionpolicies", doc: `{"metadata":{"name":"p"},"spec":{` + match + `,"validations":[{"expression":"true"}]}}`},
		"empty": {resource: "validatingadmissionpolicies", doc: `{}`, want: []string{
			`spec.matchConstraints: Required value`,
			`spec.validations: Required value: validations or auditAnnotations must contain at least one item`,
			`spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item`,
		}},
		"no rule": {resource: "validatingadmissionpolicies", doc: `{"spec":{"matchConstraints":{},"validations":[{"expression":"true"}]}}`, want: []string{
			`spec.matchConstraints.resourceRules: Required value`,
		}},
		"parts": {resource: "validatingadmissionpolicies", doc: `{"metadata":{"name":"p"},"spec":{` + match + `,"failurePolicy":"x","paramKind":{"apiVersion":"a/b/c"},
			"variables":[{},{"name":"for","expression":"1"}],
			"validations":[{"message":" ","messageExpression":" ","reason":"x"},{"expression":"1","message":"a\nb"}],
			"auditAnnotations":[{"key":"k"},{"key":"k","valueExpression":"'x'"}]}}`, want: []string{
			`spec.failurePolicy: Unsupported value: "x": supported values: "Fail", "Ignore"`,
			`spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c`,
			`spec.paramKind.kind: Required value`,
			`spec.variables[0].name: Required value: name is not specified`,
			`spec.variables[0].expression: Required value: expression is not specified`,
			`spec.variables[1].name: Invalid value: "for": must be a valid CEL identifier`,
			`spec.validations[0].expression: Required value: expression is not specified`,
			`spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified`,
			`spec.validations[0].message: Invalid value: " ": must be non-empty if specified`,
			`spec.validations[0].reason: Unsupported value: "x": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"`,
			`spec.validations[1].message: Invalid value: "a\nb": must not contain line breaks`,
			`spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not specified`,
			`spec.auditAnnotations[1].key: Duplicate value: "k"`,
		}},
		"names twice": {resource: "validatingadmissionpolicies", doc: `{"spec":{"matchConstraints":{"resourceRules":[{"resourceNames":["a","a","b/c"],"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]},"validations":[{"expression":"true"}]}}`, want: []string{
			`spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a"`,
			`spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: "b/c": may not contain '/'`,
		}},
	})
}

func TestMutatingPolicies(t *testing.T) {
	const match = `"matchConstraints":{"resourceRules":[` + admissionRule + `]},"reinvocationPolicy":"Never"`
	runPolicyCases(t, map[string]policyCase{
		"valid": {resource: "mutatingadmissionpolicies", doc: `{"spec":{` + match + `,"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[]"}}]}}`},
		"empty": {resource: "mutatingadmissionpolicies", doc: `{}`, want: []string{
			`spec.matchConstraints: Required value`,
			`spec.mutations: Required value: mutations must contain at least one item`,
			`spec.reinvocationPolicy: Required value`,
		}},
		"mutations": {resource: "mutatingadmissionpolicies", doc: `{"spec":{` + match + `,"mutations":[{},{"patchType":"x"},
			{"patchType":"JSONPatch","applyConfiguration":{}},{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":" "},"jsonPatch":{}}]}}`, want: []string{
			`spec.mutations[0].patchType: Required value`,
			`spec.mutations[1].patchType: Unsupported value: "x": supported values: "ApplyConfiguration", "JSONPatch"`,
			`spec.mutations[2].jsonPatch: Required value: must be specified when patchType is JSONPatch`,
			`spec.mutations[2].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch`,
			`spec.mutations[3].applyConfiguration.expression: Required value`,
			`spec.mutations[3].jsonPatch: Invalid value: "{jsonPatch}": must not be specified when patchType is ApplyConfiguration`,
		}},
		"deletions": {resource: "mutatingadmissionpolicybindings", doc: `{"spec":{"policyName":"p","matchResources":{"resourceRules":[{"operations":["DELETE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}}}`, want: []string{
			`spec.matchResources.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"`,
		}},
	})
}

func TestPolicyBindings(t *testing.T) {
	runPolicyCases(t, map[string]policyCase{
		"empty": {resource: "validatingadmissionpolicybindings", doc: `{"spec":{"paramRef":{}}}`, want: []string{
			`spec.policyName: Required value`,
			`spec.paramRef: Required value: one of name or selector must be specified`,
			`spec.paramRef.parameterNotFoundAction: Required value`,
			`spec.validationActions: Required value: at least one validation action is required`,
		}},
		"two ways": {resource: "validatingadmissionpolicybindings", doc: `{"spec":{"policyName":"p","paramRef":{"name":"n","selector":{},"parameterNotFoundAction":"x"},"validationActions":["Deny","Warn","Deny","x"]}}`, want: []string{
			`spec.paramRef.name: Forbidden: name and selector are mutually exclusive`,
			`spec.paramRef.selector: Forbidden: name and selector are mutually exclusive`,
			`spec.paramRef.parameterNotFoundAction: Unsupported value: "x": supported values: "Deny", "Allow"`,
			`spec.validationActions[2]: Duplicate value: "Deny"`,
			`spec.validationActions[3]: Unsupported value: "x": supported values: "Audit", "Deny", "Warn"`,
			`spec.validationActions: Invalid value: ["Deny","Warn","Deny","x"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)`,
		}},
	})
}

func TestAdmissionNamesForFiles(t *testing.T) {
	for _, k := range admissionKinds() {
		obj := policyObject(t, k, `{"metadata":{"name":"a.static.k8s.io"}}`)
		want := []string{`metadata.name: names ending with ".static.k8s.io" will be reserved for static manifest-based configurations when the ManifestBasedAdmissionControlConfig feature gate is enabled`}
		if d := cmp.Diff(want, k.Warnings(obj, nil)); d != "" {
			t.Errorf("%s: %s", k.Resource, d)
		}
	}
}
