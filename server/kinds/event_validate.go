package kinds

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateEvent checks an event in v1, validateNewEvent one in events.k8s.io;
// they differ in the name of a field.
func validateEvent(e *corev1.Event) field.ErrorList    { return checkEvent(e, "reportingComponent") }
func validateNewEvent(e *corev1.Event) field.ErrorList { return checkEvent(e, "reportingController") }

// checkEvent tells old events from new ones by the time of the event, which only
// new ones have.
func checkEvent(e *corev1.Event, controller string) field.ErrorList {
	var p problems
	ns, object := e.Namespace, e.InvolvedObject.Namespace
	if e.EventTime.IsZero() {
		clusterScoped := object == "" && (ns == metav1.NamespaceNone || ns == metav1.NamespaceDefault)
		if ns != object && !clusterScoped {
			p.foreign(object)
		}
		return p.list
	}
	if object == "" && ns != metav1.NamespaceDefault && ns != metav1.NamespaceSystem {
		p.foreign(object)
	}
	p.nonEmpty(field.NewPath(controller), e.ReportingController)
	p.invalid(field.NewPath(controller), e.ReportingController, validation.IsQualifiedName(e.ReportingController)...)
	p.nonEmpty(field.NewPath("reportingInstance"), e.ReportingInstance)
	p.nonEmpty(field.NewPath("action"), e.Action)
	p.nonEmpty(field.NewPath("reason"), e.Reason)
	for _, text := range []struct {
		name, value string
		limit       int
	}{
		{"reportingInstance", e.ReportingInstance, 128}, {"action", e.Action, 128},
		{"reason", e.Reason, 128}, {"message", e.Message, 1024},
	} {
		if len(text.value) > text.limit {
			p.invalid(field.NewPath(text.name), "", fmt.Sprintf("can have at most %v characters", text.limit))
		}
	}
	return p.list
}

func (p *problems) foreign(namespace string) {
	p.invalid(field.NewPath("involvedObject", "namespace"), namespace, "does not match event.namespace")
}

// validateNewEventCreate keeps the fields of old events out of new ones.
func validateNewEventCreate(e *corev1.Event) field.ErrorList {
	var p problems
	p.checkSeries(e.Series)
	if e.EventTime.IsZero() {
		p.required(field.NewPath("eventTime"), "")
	}
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		p.invalid(field.NewPath("type"), "", "has invalid value: "+e.Type)
	}
	for _, old := range []given{
		{"firstTimestamp", !e.FirstTimestamp.IsZero()}, {"lastTimestamp", !e.LastTimestamp.IsZero()},
		{"count", e.Count != 0}, {"source", e.Source != corev1.EventSource{}},
	} {
		if old.set {
			p.invalid(field.NewPath(old.name), "", "needs to be unset")
		}
	}
	return p.list
}

func (p *problems) checkSeries(s *corev1.EventSeries) {
	if s == nil {
		return
	}
	if s.Count < 2 {
		p.invalid(field.NewPath("series.count"), "", "should be at least 2")
	}
	if s.LastObservedTime.IsZero() {
		p.required(field.NewPath("series.lastObservedTime"), "")
	}
}

// validateNewEventUpdate lets nothing but the series change.
func validateNewEventUpdate(e, old *corev1.Event) field.ErrorList {
	var p problems
	if !equality.Semantic.DeepEqual(e.Series, old.Series) {
		p.checkSeries(e.Series)
	}
	for _, f := range []struct {
		name        string
		now, before any
	}{
		{"involvedObject", e.InvolvedObject, old.InvolvedObject},
		{"reason", e.Reason, old.Reason},
		{"message", e.Message, old.Message},
		{"source", e.Source, old.Source},
		{"firstTimestamp", e.FirstTimestamp, old.FirstTimestamp},
		{"lastTimestamp", e.LastTimestamp, old.LastTimestamp},
		{"count", e.Count, old.Count},
		{"reason", e.Reason, old.Reason},
		{"type", e.Type, old.Type},
		{"action", e.Action, old.Action},
		{"related", e.Related, old.Related},
		{"reportingController", e.ReportingController, old.ReportingController},
		{"reportingInstance", e.ReportingInstance, old.ReportingInstance},
	} {
		p.add(apivalidation.ValidateImmutableField(f.now, f.before, field.NewPath(f.name))...)
	}
	// Clients differ in how much of a fraction they keep.
	if !e.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond)) {
		p.add(apivalidation.ValidateImmutableField(e.EventTime, old.EventTime, field.NewPath("eventTime"))...)
	}
	return p.list
}
