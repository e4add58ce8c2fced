package kinds

import (
	"errors"
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	p, s, path := &problems{}, &h.Spec, field.NewPath("spec")
	switch most := path.Child("maxReplicas"); {
	case s.MaxReplicas == 0:
		p.required(most, "must be set and greater than 0")
	case s.MaxReplicas < 0:
		p.invalid(most, s.MaxReplicas, "must be greater than or equal to 1")
	}
	if s.MinReplicas != nil && s.MaxReplicas < *s.MinReplicas {
		p.invalid(path.Child("maxReplicas"), s.MaxReplicas, "must be greater than or equal to `minReplicas`")
	}
	p.scaledObject(path.Child("scaleTargetRef"), s.ScaleTargetRef)
	outside := false
	for i := range s.Metrics {
		p.metricSpec(path.Child("metrics").Index(i), &s.Metrics[i])
		outside = outside || s.Metrics[i].Type == autoscalingv2.ObjectMetricSourceType || s.Metrics[i].Type == autoscalingv2.ExternalMetricSourceType
	}
	if s.MinReplicas != nil && *s.MinReplicas == 0 && !outside {
		p.forbidden(path.Child("metrics"), "must specify at least one Object or External metric to support scaling to zero replicas")
	}
	if s.Behavior != nil {
		p.scalingRules(path.Child("behavior", "scaleUp"), s.Behavior.ScaleUp)
		p.scalingRules(path.Child("behavior", "scaleDown"), s.Behavior.ScaleDown)
	}
	return p.list
}

// validateAutoscalerTarget checks what old autoscalers are not held to: zero
// replicas, which is a feature that is off, and the form of apiVersions. old is
// nil on create.
func validateAutoscalerTarget(h, old *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	p, path := &problems{}, field.NewPath("spec")
	wasZero := old != nil && old.Spec.MinReplicas != nil && *old.Spec.MinReplicas == 0
	if least := h.Spec.MinReplicas; least != nil && *least < 1 && !wasZero {
		p.invalid(path.Child("minReplicas"), *least, "must be greater than or equal to 1")
	} else if least != nil && *least < 0 {
		p.invalid(path.Child("minReplicas"), *least, "must be greater than or equal to 0")
	}
	ref := h.Spec.ScaleTargetRef
	sameTarget := old != nil && old.Spec.ScaleTargetRef.APIVersion == ref.APIVersion && old.Spec.ScaleTargetRef.Kind == ref.Kind
	if err := checkReferenceVersion(ref.APIVersion, ref.Kind == "ReplicationController"); err != nil && !sameTarget {
		p.invalid(path.Child("scaleTargetRef", "apiVersion"), ref.APIVersion, err.Error())
	}
	if old != nil && slices.ContainsFunc(old.Spec.Metrics, badDescribedObject) {
		return p.list
	}
	for i := range h.Spec.Metrics {
		if m := h.Spec.Metrics[i]; firstMetricSource(&m) == "object" && badDescribedObject(m) {
			version := m.Object.DescribedObject.APIVersion
			p.invalid(path.Child("metrics").Index(i).Child("object", "describedObject", "apiVersion"), version, checkReferenceVersion(version, true).Error())
		}
	}
	return p.list
}

func badDescribedObject(m autoscalingv2.MetricSpec) bool {
	return m.Object != nil && checkReferenceVersion(m.Object.DescribedObject.APIVersion, true) != nil
}

func checkReferenceVersion(version string, core bool) error {
	gv, err := schema.ParseGroupVersion(version)
	if err == nil && gv.Group == "" && !core {
		err = errors.New("apiVersion must specify API group")
	}
	return err
}

func (p *problems) scaledObject(path *field.Path, ref autoscalingv2.CrossVersionObjectReference) {
	p.named(path.Child("kind"), ref.Kind, content.IsPathSegmentName)
	p.named(path.Child("name"), ref.Name, content.IsPathSegmentName)
}

func (p *problems) scalingRules(path *field.Path, r *autoscalingv2.HPAScalingRules) {
	if r == nil {
		return
	}
	if w := r.StabilizationWindowSeconds; w != nil {
		switch at := path.Child("stabilizationWindowSeconds"); {
		case *w < 0:
			p.invalid(at, *w, "must be greater than or equal to zero")
		case *w > 3600:
			p.invalid(at, *w, "must be less than or equal to 3600")
		}
	}
	if r.SelectPolicy != nil {
		oneOf(p, path.Child("selectPolicy"), *r.SelectPolicy,
			autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect)
	}
	policies := path.Child("policies")
	if len(r.Policies) == 0 {
		p.required(policies, "must specify at least one Policy")
	}
	for i := range r.Policies {
		p.scalingPolicy(policies.Index(i), &r.Policies[i])
	}
	if r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		p.invalid(path.Child("tolerance"), r.Tolerance.String(), "must be greater than or equal to 0")
	}
}

func (p *problems) scalingPolicy(path *field.Path, s *autoscalingv2.HPAScalingPolicy) {
	oneOf(p, path.Child("type"), s.Type, autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy)
	if s.Value <= 0 {
		p.invalid(path.Child("value"), s.Value, "must be greater than zero")
	}
	switch period := path.Child("periodSeconds"); {
	case s.PeriodSeconds <= 0:
		p.invalid(period, s.PeriodSeconds, "must be greater than zero")
	case s.PeriodSeconds > 1800:
		p.invalid(period, s.PeriodSeconds, "must be less than or equal to 1800")
	}
}

// metricFields are the fields of a metric, by the type that wants them, in the
// order in which they are looked at.
var metricFields = []struct {
	name string
	kind autoscalingv2.MetricSourceType
	set  func(*autoscalingv2.MetricSpec) bool
}{
	{"object", autoscalingv2.ObjectMetricSourceType, func(m *autoscalingv2.MetricSpec) bool { return m.Object != nil }},
	{"external", autoscalingv2.ExternalMetricSourceType, func(m *autoscalingv2.MetricSpec) bool { return m.External != nil }},
	{"pods", autoscalingv2.PodsMetricSourceType, func(m *autoscalingv2.MetricSpec) bool { return m.Pods != nil }},
	{"resource", autoscalingv2.ResourceMetricSourceType, func(m *autoscalingv2.MetricSpec) bool { return m.Resource != nil }},
	{"containerResource", autoscalingv2.ContainerResourceMetricSourceType, func(m *autoscalingv2.MetricSpec) bool { return m.ContainerResource != nil }},
}

func firstMetricSource(m *autoscalingv2.MetricSpec) string {
	for _, f := range metricFields {
		if f.set(m) {
			return f.name
		}
	}
	return ""
}

func (p *problems) metricSpec(path *field.Path, m *autoscalingv2.MetricSpec) {
	if m.Type == "" {
		p.required(path.Child("type"), "must specify a metric source type")
	}
	known, present := false, 0
	for _, f := range metricFields {
		known = known || f.kind == m.Type
		if f.set(m) {
			present++
		}
	}
	if !known {
		p.unknownMetric(path.Child("type"), m.Type)
	}
	p.metricSource(path, m)
	for _, f := range metricFields {
		switch wanted := f.kind == m.Type; {
		case wanted && !f.set(m):
			p.required(path.Child(f.name), "must populate information for the given metric source")
		case !wanted && f.set(m) && present != 1:
			p.forbidden(path.Child(f.name), "must populate the given metric source only")
		}
	}
	if !known {
		p.unknownMetric(path.Child("type"), m.Type)
	}
}

func (p *problems) unknownMetric(path *field.Path, t autoscalingv2.MetricSourceType) {
	p.add(field.NotSupported(path, t, []string{"ContainerResource", "External", "Object", "Pods", "Resource"}))
}

// metricSource checks the first source of a metric that is set.
func (p *problems) metricSource(path *field.Path, m *autoscalingv2.MetricSpec) {
	name := firstMetricSource(m)
	path = path.Child(name)
	switch name {
	case "object":
		p.scaledObject(path.Child("describedObject"), m.Object.DescribedObject)
		p.metricName(path, m.Object.Metric.Name)
		p.metricTarget(path.Child("target"), &m.Object.Target)
		p.neither(path.Child("target", "averageValue"), "must set either a target value or averageValue", m.Object.Target.Value != nil, m.Object.Target.AverageValue != nil)
	case "external":
		t := &m.External.Target
		p.metricName(path, m.External.Metric.Name)
		p.metricTarget(path.Child("target"), t)
		p.neither(path.Child("target", "averageValue"), "must set either a target value for metric or a per-pod target", t.Value != nil, t.AverageValue != nil)
		if t.Value != nil && t.AverageValue != nil {
			p.forbidden(path.Child("target", "value"), "may not set both a target value for metric and a per-pod target")
		}
	case "pods":
		p.metricName(path, m.Pods.Metric.Name)
		p.metricTarget(path.Child("target"), &m.Pods.Target)
		p.neither(path.Child("target", "averageValue"), "must specify a positive target averageValue", m.Pods.Target.AverageValue != nil)
	case "resource":
		if m.Resource.Name == "" {
			p.required(path.Child("name"), "must specify a resource name")
		}
		p.resourceTarget(path.Child("target"), &m.Resource.Target)
	case "containerResource":
		p.containerMetric(path, m.ContainerResource)
	}
}

func (p *problems) containerMetric(path *field.Path, s *autoscalingv2.ContainerResourceMetricSource) {
	if s.Name == "" {
		p.required(path.Child("name"), "must specify a resource name")
	} else {
		c := &podChecker{}
		c.checkContainerResource(s.Name, path.Child("name"))
		p.add(c.list...)
	}
	if s.Container == "" {
		p.required(path.Child("container"), "must specify a container")
	} else {
		p.invalid(path.Child("container"), s.Container, validation.IsDNS1123Label(s.Container)...)
	}
	p.resourceTarget(path.Child("target"), &s.Target)
}

// resourceTarget checks the target of a resource: a utilization or a value.
func (p *problems) resourceTarget(path *field.Path, t *autoscalingv2.MetricTarget) {
	p.metricTarget(path, t)
	p.neither(path.Child("averageUtilization"), "must set either a target raw value or a target utilization", t.AverageUtilization != nil, t.AverageValue != nil)
	if t.AverageUtilization != nil && t.AverageValue != nil {
		p.forbidden(path.Child("averageValue"), "may not set both a target raw value and a target utilization")
	}
}

// neither asks for one of several fields.
func (p *problems) neither(path *field.Path, detail string, set ...bool) {
	if !slices.Contains(set, true) {
		p.required(path, detail)
	}
}

func (p *problems) metricName(path *field.Path, name string) {
	at := path.Child("metric", "name")
	if name == "" {
		p.required(at, "must specify a metric name")
		return
	}
	p.invalid(at, name, content.IsPathSegmentName(name)...)
}

func (p *problems) metricTarget(path *field.Path, t *autoscalingv2.MetricTarget) {
	if t.Type == "" {
		p.required(path.Child("type"), "must specify a metric target type")
	}
	known := []autoscalingv2.MetricTargetType{autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType}
	if !slices.Contains(known, t.Type) {
		p.invalid(path.Child("type"), t.Type, fmt.Sprintf("must be either %s, %s, or %s", known[0], known[1], known[2]))
	}
	if t.Value != nil && t.Value.Sign() != 1 {
		p.invalid(path.Child("value"), t.Value, "must be positive")
	}
	if t.AverageValue != nil && t.AverageValue.Sign() != 1 {
		p.invalid(path.Child("averageValue"), t.AverageValue, "must be positive")
	}
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		p.invalid(path.Child("averageUtilization"), *t.AverageUtilization, "must be greater than 0")
	}
}
