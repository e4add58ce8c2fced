package kinds

import "testing"

func TestQuotaValidation(t *testing.T) {
	runWorkloadCases(t, map[string]workloadCase{
		"quota": {resource: "resourcequotas", doc: `{"spec":{"hard":{"pods":"3","requests.cpu":"1","count/deployments.apps":"2","hugepages-2Mi":"4Mi"}}}`},
		"odd quota": {resource: "resourcequotas", doc: `{"spec":{"hard":{"pods":"1500m","odd":"1","cpu":"-1","storage":"1"}}}`, want: []string{
			`FieldValueInvalid spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0`,
			`FieldValueInvalid spec.hard[odd]: Invalid value: "odd": must be a standard resource for quota`,
			`FieldValueInvalid spec.hard[odd]: Invalid value: "odd": must be a standard resource type or fully qualified`,
			`FieldValueInvalid spec.hard[pods]: Invalid value: "1500m": must be an integer`,
			`FieldValueInvalid spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota`,
		}},
		"odd scopes": {resource: "resourcequotas", doc: `{"spec":{"hard":{"services":"1","pods":"1"},"scopes":["BestEffort","NotBestEffort","Odd"]}}`, want: []string{
			`FieldValueInvalid spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Odd"]: conflicting scopes`,
			`FieldValueInvalid spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Odd"]: unsupported scope`,
			`FieldValueInvalid spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Odd"]: unsupported scope applied to resource`,
			`FieldValueInvalid spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Odd"]: unsupported scope applied to resource`,
		}},
		"odd scope selector": {resource: "resourcequotas", doc: `{"spec":{"scopeSelector":{"matchExpressions":[{"scopeName":"Terminating","operator":"In"},{"scopeName":"PriorityClass","operator":"Odd"}]}}}`, want: []string{
			`FieldValueInvalid spec.scopeSelector.matchExpressions.operator: Invalid value: "In": must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity`,
			`FieldValueInvalid spec.scopeSelector.matchExpressions.operator: Invalid value: "Odd": not a valid selector operator`,
			"FieldValueRequired spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
		}},
		"other scopes": {resource: "resourcequotas", old: `{"spec":{"scopes":["BestEffort"]}}`, doc: `{"spec":{}}`, want: []string{"FieldValueInvalid spec.scopes: Invalid value: null: field is immutable"}},
		"limits":       {resource: "limitranges", doc: `{"spec":{"limits":[{"type":"Container","max":{"cpu":"2"},"min":{"cpu":"1"}}]}}`},
		"odd limits": {resource: "limitranges", doc: `{"spec":{"limits":[{"type":"Odd"},{"type":"Pod","max":{"cpu":"1"},"min":{"cpu":"2"},"default":{"cpu":"1"}},{"type":"PersistentVolumeClaim"},{"type":"Pod","maxLimitRequestRatio":{"cpu":"500m"}}]}}`, want: []string{
			`FieldValueDuplicate spec.limits[3].type: Duplicate value: "Pod"`,
			"FieldValueForbidden spec.limits[1].default: Forbidden: may not be specified when `type` is 'Pod'",
			`FieldValueInvalid spec.limits[0].type: Invalid value: "Odd": must be a standard limit type or fully qualified`,
			`FieldValueInvalid spec.limits[1].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1`,
			`FieldValueInvalid spec.limits[3].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1`,
			"FieldValueRequired spec.limits[2].limits: Required value: either minimum or maximum storage value is required, but neither was provided",
		}},
		"limits that contradict": {resource: "limitranges", doc: `{"spec":{"limits":[{"type":"Container","max":{"cpu":"2"},"min":{"cpu":"1"},"default":{"cpu":"3"},"defaultRequest":{"cpu":"500m"},"maxLimitRequestRatio":{"cpu":"3"}}]}}`, want: []string{
			`FieldValueInvalid spec.limits[0].default[cpu]: Invalid value: "2": default value 3 is greater than max value 2`,
			`FieldValueInvalid spec.limits[0].defaultRequest[cpu]: Invalid value: "500m": min value 1 is greater than default request value 500m`,
			`FieldValueInvalid spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000`,
		}},
	})
}
