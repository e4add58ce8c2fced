package kinds

import (
	"encoding/json"
	"fmt"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// autoscaling/v1 knows one metric, the utilization of CPU. All others, and what
// it has no fields for, it keeps in annotations, encoded as JSON.

// autoscalerToV1 makes the form of autoscaling/v1 from the stored one.
func autoscalerToV1(obj runtime.Object) (runtime.Object, error) {
	in := obj.(*autoscalingv2.HorizontalPodAutoscaler)
	out := &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas, MaxReplicas: in.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration, LastScaleTime: in.Status.LastScaleTime,
			CurrentReplicas: in.Status.CurrentReplicas, DesiredReplicas: in.Status.DesiredReplicas,
		},
	}
	extra := map[string]any{}
	var others []autoscalingv1.MetricSpec
	for i := range in.Spec.Metrics {
		if percent := cpuTarget(&in.Spec.Metrics[i]); percent != nil {
			setDefault(&out.Spec.TargetCPUUtilizationPercentage, *percent)
			continue
		}
		others = append(others, metricToV1(&in.Spec.Metrics[i]))
	}
	var statuses []autoscalingv1.MetricStatus
	for i := range in.Status.CurrentMetrics {
		m := &in.Status.CurrentMetrics[i]
		statuses = append(statuses, metricStatusToV1(m))
		if r := m.Resource; r != nil && m.Type == autoscalingv2.ResourceMetricSourceType && r.Name == corev1.ResourceCPU && r.Current.AverageUtilization != nil {
			percent := *r.Current.AverageUtilization
			out.Status.CurrentCPUUtilizationPercentage = &percent
		}
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	for _, c := range in.Status.Conditions {
		conditions = append(conditions, autoscalingv1.HorizontalPodAutoscalerCondition{
			Type: autoscalingv1.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	addUnlessEmpty(extra, autoscalerMetrics, others)
	addUnlessEmpty(extra, autoscalerStatuses, statuses)
	addUnlessEmpty(extra, autoscalerConditions, conditions)
	if in.Spec.Behavior != nil {
		extra[autoscalerBehavior] = shownBehavior(in.Spec.Behavior)
	}
	var err error
	out.Annotations, err = withEncoded(withoutAutoscalerAnnotations(in.Annotations), extra)
	return out, err
}

func addUnlessEmpty[T any](extra map[string]any, key string, list []T) {
	if len(list) > 0 {
		extra[key] = list
	}
}

func withEncoded(annotations map[string]string, extra map[string]any) (map[string]string, error) {
	if len(extra) == 0 {
		return annotations, nil
	}
	out := maps.Clone(annotations)
	if out == nil {
		out = map[string]string{}
	}
	for key, v := range extra {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", key, err)
		}
		out[key] = string(b)
	}
	return out, nil
}

// cpuTarget is the wanted utilization of CPU, if that is what m is about.
func cpuTarget(m *autoscalingv2.MetricSpec) *int32 {
	if m.Type != autoscalingv2.ResourceMetricSourceType || m.Resource == nil || m.Resource.Name != corev1.ResourceCPU {
		return nil
	}
	return m.Resource.Target.AverageUtilization
}

// shownBehavior is a behavior as the annotation has it: with the names of the Go
// fields, which a decoder accepts for those of the API.
func shownBehavior(b *autoscalingv2.HorizontalPodAutoscalerBehavior) any {
	type policy struct {
		Type                 autoscalingv2.HPAScalingPolicyType
		Value, PeriodSeconds int32
	}
	type rules struct {
		StabilizationWindowSeconds *int32
		SelectPolicy               *autoscalingv2.ScalingPolicySelect
		Policies                   []policy
		Tolerance                  *resource.Quantity
	}
	shown := func(r *autoscalingv2.HPAScalingRules) *rules {
		if r == nil {
			return nil
		}
		out := &rules{r.StabilizationWindowSeconds, r.SelectPolicy, nil, r.Tolerance}
		for _, p := range r.Policies {
			out.Policies = append(out.Policies, policy(p))
		}
		return out
	}
	return struct{ ScaleUp, ScaleDown *rules }{shown(b.ScaleUp), shown(b.ScaleDown)}
}

// autoscalerFromV1 makes the stored form from that of autoscaling/v1. An
// annotation that cannot be read is as good as none.
func autoscalerFromV1(obj runtime.Object) (runtime.Object, error) {
	in := obj.(*autoscalingv1.HorizontalPodAutoscaler)
	out := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas, MaxReplicas: in.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration, LastScaleTime: in.Status.LastScaleTime,
			CurrentReplicas: in.Status.CurrentReplicas, DesiredReplicas: in.Status.DesiredReplicas,
		},
	}
	out.Annotations = withoutAutoscalerAnnotations(in.Annotations)
	for _, m := range decoded[[]autoscalingv1.MetricSpec](in.Annotations, autoscalerMetrics) {
		out.Spec.Metrics = append(out.Spec.Metrics, metricFromV1(&m))
	}
	if percent := in.Spec.TargetCPUUtilizationPercentage; percent != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, cpuUtilization(*percent))
	}
	if len(out.Spec.Metrics) == 0 {
		out.Spec.Metrics = []autoscalingv2.MetricSpec{cpuUtilization(defaultCPUUtilization)}
	}
	if b := decoded[autoscalingv2.HorizontalPodAutoscalerBehavior](in.Annotations, autoscalerBehavior); b.ScaleUp != nil || b.ScaleDown != nil {
		out.Spec.Behavior = &b
	}
	out.Status.CurrentMetrics = metricStatusesFromV1(in)
	for _, c := range decoded[[]autoscalingv1.HorizontalPodAutoscalerCondition](in.Annotations, autoscalerConditions) {
		out.Status.Conditions = append(out.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
			Type: autoscalingv2.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return out, nil
}

// metricStatusesFromV1 prefers the annotation, which says more than the field.
func metricStatusesFromV1(in *autoscalingv1.HorizontalPodAutoscaler) []autoscalingv2.MetricStatus {
	var out []autoscalingv2.MetricStatus
	for _, m := range decoded[[]autoscalingv1.MetricStatus](in.Annotations, autoscalerStatuses) {
		out = append(out, metricStatusFromV1(&m))
	}
	if percent := in.Status.CurrentCPUUtilizationPercentage; len(out) == 0 && percent != nil {
		return []autoscalingv2.MetricStatus{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{
				Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: percent},
			},
		}}
	}
	return out
}

func decoded[T any](annotations map[string]string, key string) T {
	var v, none T
	if err := json.Unmarshal([]byte(annotations[key]), &v); err != nil {
		return none
	}
	return v
}
