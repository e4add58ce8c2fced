package kinds

import (
	"fmt"
	"maps"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const defaultCPUUtilization = 80

func horizontalPodAutoscalerKind() *Kind {
	return &Kind{
		GVK:      autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
		Resource: "horizontalpodautoscalers", Singular: "horizontalpodautoscaler",
		ShortNames: []string{"hpa"}, Categories: []string{"all"},
		Namespaced: true,
		New:        newOf[autoscalingv2.HorizontalPodAutoscaler], NewList: newOf[autoscalingv2.HorizontalPodAutoscalerList],
		Also: []Version{{
			GVK:        autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
			New:        newOf[autoscalingv1.HorizontalPodAutoscaler],
			NewList:    newOf[autoscalingv1.HorizontalPodAutoscalerList],
			FromStored: autoscalerToV1, ToStored: autoscalerFromV1,
		}},
		HasStatus: true,
		Default:   each(defaultAutoscaler),
		Validate:  check(validateAutoscaler),
		ValidateCreate: check(func(h *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
			return validateAutoscalerTarget(h, nil)
		}),
		ValidateUpdate: checkPair(validateAutoscalerTarget),
		ValidateStatus: checkPair(func(h, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
			p := &problems{}
			p.statusCounts(field.NewPath("status"),
				count{"currentReplicas", int64(h.Status.CurrentReplicas)}, count{"desiredReplicas", int64(h.Status.DesiredReplicas)})
			return p.list
		}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Reference", "What is scaled."), column("Targets", "Current and wanted values of the metrics."),
			column("MinPods", "Fewest replicas."), column("MaxPods", "Most replicas."), column("Replicas", "Replicas now."),
			ageColumn(),
		},
		Cells: cells(autoscalerCells),
	}
}

func defaultAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) {
	s := &h.Spec
	h.Annotations = withoutAutoscalerAnnotations(h.Annotations)
	setDefault(&s.MinReplicas, 1)
	if len(s.Metrics) == 0 {
		s.Metrics = []autoscalingv2.MetricSpec{cpuUtilization(defaultCPUUtilization)}
	}
	if b := s.Behavior; b != nil {
		setDefault(&b.ScaleUp, autoscalingv2.HPAScalingRules{})
		setDefault(&b.ScaleUp.StabilizationWindowSeconds, 0)
		defaultScalingRules(b.ScaleUp, scalingPolicy(autoscalingv2.PodsScalingPolicy, 4), scalingPolicy(autoscalingv2.PercentScalingPolicy, 100))
		setDefault(&b.ScaleDown, autoscalingv2.HPAScalingRules{})
		defaultScalingRules(b.ScaleDown, scalingPolicy(autoscalingv2.PercentScalingPolicy, 100))
	}
}

func cpuUtilization(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
		},
	}
}

func scalingPolicy(t autoscalingv2.HPAScalingPolicyType, n int32) autoscalingv2.HPAScalingPolicy {
	return autoscalingv2.HPAScalingPolicy{Type: t, Value: n, PeriodSeconds: 15}
}

func defaultScalingRules(r *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
	setDefault(&r.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if r.Policies == nil {
		r.Policies = policies
	}
}

// Annotations that hold, in autoscaling/v1, what that version has no fields for.
const (
	autoscalerMetrics    = "autoscaling.alpha.kubernetes.io/metrics"
	autoscalerStatuses   = "autoscaling.alpha.kubernetes.io/current-metrics"
	autoscalerConditions = "autoscaling.alpha.kubernetes.io/conditions"
	autoscalerBehavior   = "autoscaling.alpha.kubernetes.io/behavior"
	autoscalerDown       = "autoscaling.alpha.kubernetes.io/scale-down-tolerance"
	autoscalerUp         = "autoscaling.alpha.kubernetes.io/scale-up-tolerance"
)

var autoscalerAnnotations = []string{autoscalerMetrics, autoscalerStatuses, autoscalerConditions, autoscalerBehavior, autoscalerDown, autoscalerUp}

// withoutAutoscalerAnnotations returns the map without those annotations; it
// does not change the one given.
func withoutAutoscalerAnnotations(in map[string]string) map[string]string {
	if !slices.ContainsFunc(autoscalerAnnotations, func(k string) bool { _, ok := in[k]; return ok }) {
		return in
	}
	out := maps.Clone(in)
	for _, k := range autoscalerAnnotations {
		delete(out, k)
	}
	return out
}

func autoscalerCells(h *autoscalingv2.HorizontalPodAutoscaler, now metav1.Time) []any {
	least := "<unset>"
	if h.Spec.MinReplicas != nil {
		least = fmt.Sprint(*h.Spec.MinReplicas)
	}
	return []any{h.Name, h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name, metricsText(h.Spec.Metrics, h.Status.CurrentMetrics),
		least, int64(h.Spec.MaxReplicas), int64(h.Status.CurrentReplicas), Age(h.CreationTimestamp, now)}
}
