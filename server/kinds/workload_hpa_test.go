package kinds

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

func autoscalerDoc(more string) string {
	return `{"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}` + more + `}}`
}

func TestAutoscalerValidation(t *testing.T) {
	runWorkloadCases(t, map[string]workloadCase{
		"autoscaler": {resource: "horizontalpodautoscalers", doc: autoscalerDoc("")},
		"of nothing": {resource: "horizontalpodautoscalers", doc: `{"spec":{"minReplicas":2}}`, want: []string{
			"FieldValueInvalid spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
			`FieldValueInvalid spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group`,
			"FieldValueRequired spec.maxReplicas: Required value: must be set and greater than 0",
			"FieldValueRequired spec.scaleTargetRef.kind: Required value", "FieldValueRequired spec.scaleTargetRef.name: Required value",
		}},
		"down to zero": {resource: "horizontalpodautoscalers", doc: autoscalerDoc(`,"minReplicas":0`), want: []string{
			"FieldValueForbidden spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
			"FieldValueInvalid spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
		}},
		"odd metrics": {resource: "horizontalpodautoscalers", doc: autoscalerDoc(`,"metrics":[{},{"type":"Pods","resource":{"name":"cpu","target":{"type":"Odd","averageUtilization":0}}},{"type":"Resource","resource":{"target":{"type":"Value"}},"pods":{}},{"type":"External","external":{"metric":{"name":"a/b"},"target":{"type":"Value","value":"-1","averageValue":"1"}}}]`), want: []string{
			"FieldValueForbidden spec.metrics[2].pods: Forbidden: must populate the given metric source only",
			"FieldValueForbidden spec.metrics[3].external.target.value: Forbidden: may not set both a target value for metric and a per-pod target",
			`FieldValueInvalid spec.metrics[1].resource.target.averageUtilization: Invalid value: 0: must be greater than 0`,
			`FieldValueInvalid spec.metrics[1].resource.target.type: Invalid value: "Odd": must be either Utilization, Value, or AverageValue`,
			`FieldValueInvalid spec.metrics[2].pods.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue`,
			`FieldValueInvalid spec.metrics[3].external.metric.name: Invalid value: "a/b": may not contain '/'`,
			`FieldValueInvalid spec.metrics[3].external.target.value: Invalid value: "-1": must be positive`,
			`FieldValueNotSupported spec.metrics[0].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"`,
			`FieldValueNotSupported spec.metrics[0].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"`,
			"FieldValueRequired spec.metrics[0].type: Required value: must specify a metric source type",
			"FieldValueRequired spec.metrics[1].pods: Required value: must populate information for the given metric source",
			"FieldValueRequired spec.metrics[2].pods.metric.name: Required value: must specify a metric name",
			"FieldValueRequired spec.metrics[2].pods.target.averageValue: Required value: must specify a positive target averageValue",
			"FieldValueRequired spec.metrics[2].pods.target.type: Required value: must specify a metric target type",
		}},
		"odd behavior": {resource: "horizontalpodautoscalers", doc: autoscalerDoc(`,"behavior":{"scaleUp":{"stabilizationWindowSeconds":3601,"selectPolicy":"Odd","policies":[{"type":"Odd","value":0,"periodSeconds":1801}],"tolerance":"-1"},"scaleDown":{"policies":[]}}`), want: []string{
			`FieldValueInvalid spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800`,
			"FieldValueInvalid spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
			"FieldValueInvalid spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
			`FieldValueInvalid spec.behavior.scaleUp.tolerance: Invalid value: "-1": must be greater than or equal to 0`,
			`FieldValueNotSupported spec.behavior.scaleUp.policies[0].type: Unsupported value: "Odd": supported values: "Percent", "Pods"`,
			`FieldValueNotSupported spec.behavior.scaleUp.selectPolicy: Unsupported value: "Odd": supported values: "Disabled", "Max", "Min"`,
			"FieldValueRequired spec.behavior.scaleDown.policies: Required value: must specify at least one Policy",
		}},
		"of an old target": {resource: "horizontalpodautoscalers", old: autoscalerDoc(""), doc: autoscalerDoc(`,"minReplicas":2`)},
		"odd status": {resource: "horizontalpodautoscalers", status: true, old: autoscalerDoc(""), doc: `{"status":{"desiredReplicas":-1}}`, want: []string{
			"FieldValueInvalid status.desiredReplicas: Invalid value: -1: must be greater than or equal to 0",
		}},
	})
}

func TestAutoscalerVersions(t *testing.T) {
	const spec = `"maxReplicas":3,"minReplicas":1,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}`
	for name, c := range map[string]struct{ stored, v1 string }{
		"cpu only": {
			`{"metadata":{},"spec":{` + spec + `,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":70}}}]},"status":{"currentMetrics":null,"desiredReplicas":0}}`,
			`{"metadata":{},"spec":{` + spec + `,"targetCPUUtilizationPercentage":70},"status":{"currentReplicas":0,"desiredReplicas":0}}`,
		},
		"other metrics": {
			`{"metadata":{"annotations":{"a":"b"}},"spec":{` + spec + `,"metrics":[{"type":"Pods","pods":{"metric":{"name":"m"},"target":{"type":"AverageValue","averageValue":"5"}}},{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}}]},"status":{"currentMetrics":null,"desiredReplicas":0}}`,
			`{"metadata":{"annotations":{"a":"b","autoscaling.alpha.kubernetes.io/metrics":"[{\"type\":\"Pods\",\"pods\":{\"metricName\":\"m\",\"targetAverageValue\":\"5\"}},{\"type\":\"Resource\",\"resource\":{\"name\":\"memory\",\"targetAverageValue\":\"1Gi\"}}]"}},"spec":{` + spec + `},"status":{"currentReplicas":0,"desiredReplicas":0}}`,
		},
		"behavior, conditions and current metrics": {
			`{"metadata":{},"spec":{` + spec + `,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":70}}}],"behavior":{"scaleDown":{"selectPolicy":"Min","policies":[{"type":"Pods","value":1,"periodSeconds":2}]}}},"status":{"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":50,"averageValue":"10m"}}}],"desiredReplicas":2,"conditions":[{"type":"AbleToScale","status":"True","lastTransitionTime":"2020-01-02T03:04:05Z"}]}}`,
			`{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/behavior":"{\"ScaleUp\":null,\"ScaleDown\":{\"StabilizationWindowSeconds\":null,\"SelectPolicy\":\"Min\",\"Policies\":[{\"Type\":\"Pods\",\"Value\":1,\"PeriodSeconds\":2}],\"Tolerance\":null}}","autoscaling.alpha.kubernetes.io/conditions":"[{\"type\":\"AbleToScale\",\"status\":\"True\",\"lastTransitionTime\":\"2020-01-02T03:04:05Z\"}]","autoscaling.alpha.kubernetes.io/current-metrics":"[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"currentAverageUtilization\":50,\"currentAverageValue\":\"10m\"}}]"}},"spec":{` + spec + `,"targetCPUUtilizationPercentage":70},"status":{"currentCPUUtilizationPercentage":50,"currentReplicas":0,"desiredReplicas":2}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := horizontalPodAutoscalerKind().Also[0]
			stored, v1 := &autoscalingv2.HorizontalPodAutoscaler{}, &autoscalingv1.HorizontalPodAutoscaler{}
			for doc, obj := range map[string]any{c.stored: stored, c.v1: v1} {
				if err := json.Unmarshal([]byte(doc), obj); err != nil {
					t.Fatal(err)
				}
			}
			got, err := v.FromStored(stored)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(coreJSON(t, v1), coreJSON(t, got)); d != "" {
				t.Error("to v1:", d)
			}
			back, err := v.ToStored(v1)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(coreJSON(t, stored), coreJSON(t, back)); d != "" {
				t.Error("to stored:", d)
			}
			if len(v1.Annotations) > 0 && stored.Annotations["autoscaling.alpha.kubernetes.io/metrics"] != "" {
				t.Error("the given object was changed")
			}
		})
	}
}
