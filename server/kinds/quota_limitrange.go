package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func limitRangeKind() *Kind {
	created := column("Created At", "When the object was created.")
	created.Type = "date"
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("LimitRange"),
		Resource: "limitranges", Singular: "limitrange",
		ShortNames: []string{"limits"}, Namespaced: true, CreateOnUpdate: true,
		New: newOf[corev1.LimitRange], NewList: newOf[corev1.LimitRangeList],
		Default: each(func(l *corev1.LimitRange) {
			for i := range l.Spec.Limits {
				defaultLimit(&l.Spec.Limits[i])
			}
		}),
		Validate: check(validateLimitRange),
		Columns:  []metav1.TableColumnDefinition{nameColumn(), created},
		Cells: cells(func(l *corev1.LimitRange, _ metav1.Time) []any {
			return []any{l.Name, l.CreationTimestamp.UTC().Format(time.RFC3339)}
		}),
	}
}

// defaultLimit lets containers have what they may at most have, and request what
// they have, or at least the least.
func defaultLimit(l *corev1.LimitRangeItem) {
	if l.Type == corev1.LimitTypeContainer {
		if l.Default == nil {
			l.Default = corev1.ResourceList{}
		}
		if l.DefaultRequest == nil {
			l.DefaultRequest = corev1.ResourceList{}
		}
		addMissing(l.Default, l.Max)
		addMissing(l.DefaultRequest, l.Default)
		addMissing(l.DefaultRequest, l.Min)
	}
	for _, list := range []corev1.ResourceList{l.Max, l.Min, l.Default, l.DefaultRequest, l.MaxLimitRequestRatio} {
		roundUp(list)
	}
}

func addMissing(to, from corev1.ResourceList) {
	for name, q := range from {
		if _, set := to[name]; !set {
			to[name] = q.DeepCopy()
		}
	}
}

func validateLimitRange(l *corev1.LimitRange) field.ErrorList {
	p, types := &problems{}, seen{}
	for i := range l.Spec.Limits {
		path, item := field.NewPath("spec", "limits").Index(i), &l.Spec.Limits[i]
		p.limitType(path.Child("type"), item.Type)
		if types.again(string(item.Type)) {
			p.duplicate(path.Child("type"), item.Type)
		}
		p.limitItem(path, item)
	}
	return p.list
}

func (p *problems) limitType(path *field.Path, t corev1.LimitType) {
	if msgs := validation.IsQualifiedName(string(t)); len(msgs) > 0 {
		p.invalid(path, t, msgs...)
		return
	}
	standard := t == corev1.LimitTypePod || t == corev1.LimitTypeContainer || t == corev1.LimitTypePersistentVolumeClaim
	if !standard && !strings.Contains(string(t), "/") {
		p.invalid(path, t, "must be a standard limit type or fully qualified")
	}
}

func (p *problems) limitItem(path *field.Path, l *corev1.LimitRangeItem) {
	names := map[corev1.ResourceName]bool{}
	p.limitNames(path.Child("max"), l.Type, l.Max, names)
	p.limitNames(path.Child("min"), l.Type, l.Min, names)
	defaults, requests := l.Default, l.DefaultRequest
	if l.Type == corev1.LimitTypePod {
		if len(defaults) > 0 {
			p.forbidden(path.Child("default"), "may not be specified when `type` is 'Pod'")
		}
		if len(requests) > 0 {
			p.forbidden(path.Child("defaultRequest"), "may not be specified when `type` is 'Pod'")
		}
		defaults, requests = nil, nil
	}
	p.limitNames(path.Child("default"), l.Type, defaults, names)
	p.limitNames(path.Child("defaultRequest"), l.Type, requests, names)
	if l.Type == corev1.LimitTypePersistentVolumeClaim {
		_, least := l.Min[corev1.ResourceStorage]
		_, most := l.Max[corev1.ResourceStorage]
		if !least && !most {
			p.required(path.Child("limits"), "either minimum or maximum storage value is required, but neither was provided")
		}
	}
	p.limitNames(path.Child("maxLimitRequestRatio"), l.Type, l.MaxLimitRequestRatio, names)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		p.limitAmounts(path, name, limitAmounts{
			amount(l.Min, name), amount(l.Max, name), amount(defaults, name), amount(requests, name), amount(l.MaxLimitRequestRatio, name),
		})
	}
}

func (p *problems) limitNames(path *field.Path, t corev1.LimitType, list corev1.ResourceList, names map[corev1.ResourceName]bool) {
	c := &podChecker{}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		names[name] = true
		if t == corev1.LimitTypePod || t == corev1.LimitTypeContainer {
			c.checkContainerResource(name, path.Key(string(name)))
		} else {
			c.checkResourceName(name, path.Key(string(name)))
		}
	}
	p.add(c.list...)
}

// limitAmounts are the limits on one resource; nil for those not given.
type limitAmounts struct{ min, max, limit, request, ratio *resource.Quantity }

func amount(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	if q, ok := list[name]; ok {
		return &q
	}
	return nil
}

// limitAmounts checks the limits on one resource against each other.
func (p *problems) limitAmounts(path *field.Path, name corev1.ResourceName, a limitAmounts) {
	above := func(x, y *resource.Quantity) bool { return x != nil && y != nil && x.Cmp(*y) > 0 }
	for _, rule := range []struct {
		broken bool
		field  string
		value  *resource.Quantity
		detail string
		args   [2]*resource.Quantity
	}{
		{above(a.min, a.max), "min", a.min, "min value %s is greater than max value %s", [2]*resource.Quantity{a.min, a.max}},
		{above(a.min, a.request), "defaultRequest", a.request, "min value %s is greater than default request value %s", [2]*resource.Quantity{a.min, a.request}},
		{above(a.request, a.max), "defaultRequest", a.request, "default request value %s is greater than max value %s", [2]*resource.Quantity{a.request, a.max}},
		{above(a.request, a.limit), "defaultRequest", a.request, "default request value %s is greater than default limit value %s", [2]*resource.Quantity{a.request, a.limit}},
		{above(a.min, a.limit), "default", a.min, "min value %s is greater than default value %s", [2]*resource.Quantity{a.min, a.limit}},
		{above(a.limit, a.max), "default", a.max, "default value %s is greater than max value %s", [2]*resource.Quantity{a.limit, a.max}},
	} {
		if rule.broken {
			p.invalid(path.Child(rule.field).Key(string(name)), *rule.value, fmt.Sprintf(rule.detail, rule.args[0], rule.args[1]))
		}
	}
	p.limitRatio(path.Child("maxLimitRequestRatio").Key(string(name)), a)
	if shared := isNative(name) && !isHugePage(name); !shared && a.limit != nil && a.request != nil && a.limit.Cmp(*a.request) != 0 {
		p.invalid(path.Child("defaultRequest").Key(string(name)), *a.request,
			fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", a.limit, a.request, name))
	}
}

func (p *problems) limitRatio(path *field.Path, a limitAmounts) {
	if a.ratio == nil {
		return
	}
	if a.ratio.Cmp(*resource.NewQuantity(1, resource.DecimalSI)) < 0 {
		p.invalid(path, *a.ratio, fmt.Sprintf("ratio %s is less than 1", a.ratio))
	}
	if a.min == nil || a.max == nil {
		return
	}
	ratio, least, most := float64(a.ratio.Value()), a.min.Value(), a.max.Value()
	if a.ratio.Value() < resource.MaxMilliValue && least < resource.MaxMilliValue && most < resource.MaxMilliValue {
		ratio, least, most = float64(a.ratio.MilliValue())/1000, a.min.MilliValue(), a.max.MilliValue()
	}
	if greatest := float64(most) / float64(least); ratio > greatest {
		p.invalid(path, *a.ratio, fmt.Sprintf("ratio %s is greater than max/min = %f", a.ratio, greatest))
	}
}
