package kinds

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

func eventKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("Event"),
		Resource: "events", Singular: "event", ShortNames: []string{"ev"}, Namespaced: true,
		New: newOf[corev1.Event], NewList: newOf[corev1.EventList],
		Also:           []Version{newEventVersion()},
		CreateOnUpdate: true,
		ValidName:      path.ValidatePathSegmentName,
		Validate:       check(validateEvent),
		Fields: []string{"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
			"reason", "reportingComponent", "source", "type"},
		FieldSet: fieldSet(eventFields),
		Columns: []metav1.TableColumnDefinition{
			column("Last Seen", "Time since it last happened."), column("Type", "Normal or Warning."),
			column("Reason", "Why it happened, in a word."), column("Object", "What it happened to."),
			wideColumn("Subobject", "Which part of it."), wideColumn("Source", "Who reported it, and from where."),
			column("Message", "What happened."), wideColumn("First Seen", "Time since it first happened."),
			wideColumn("Count", "How often it happened."), eventNameColumn(),
		},
		Cells: cells(eventCells),
	}
}

func eventNameColumn() metav1.TableColumnDefinition {
	c := nameColumn()
	c.Priority = 1
	return c
}

func eventFields(e *corev1.Event) fields.Set {
	o := e.InvolvedObject
	return fields.Set{
		"involvedObject.kind":            o.Kind,
		"involvedObject.namespace":       o.Namespace,
		"involvedObject.name":            o.Name,
		"involvedObject.uid":             string(o.UID),
		"involvedObject.apiVersion":      o.APIVersion,
		"involvedObject.resourceVersion": o.ResourceVersion,
		"involvedObject.fieldPath":       o.FieldPath,
		"reason":                         e.Reason,
		"reportingComponent":             e.ReportingController,
		"source":                         orElse(e.Source.Component, e.ReportingController),
		"type":                           e.Type,
	}
}

func eventCells(e *corev1.Event, now metav1.Time) []any {
	first := Age(e.FirstTimestamp, now)
	if e.FirstTimestamp.IsZero() {
		first = ageAt(e.EventTime.Time, now)
	}
	last, count := Age(e.LastTimestamp, now), int64(e.Count)
	if e.LastTimestamp.IsZero() {
		last = first
	}
	if e.Series != nil {
		last, count = ageAt(e.Series.LastObservedTime.Time, now), int64(e.Series.Count)
	} else if count == 0 {
		count = 1
	}
	object := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		object += "/" + e.InvolvedObject.Name
	}
	source := orElse(e.Source.Component, e.ReportingController)
	if from := orElse(e.Source.Host, e.ReportingInstance); from != "" {
		source += ", " + from
	}
	return []any{last, e.Type, e.Reason, object, e.InvolvedObject.FieldPath, source,
		strings.TrimSpace(e.Message), first, count, e.Name}
}

// newEventVersion is the version of events.k8s.io, which renames fields and asks
// for more of new events.
func newEventVersion() Version {
	return Version{
		GVK: eventsv1.SchemeGroupVersion.WithKind("Event"),
		New: newOf[eventsv1.Event], NewList: newOf[eventsv1.EventList],
		FromStored: func(obj runtime.Object) (runtime.Object, error) {
			e, ok := obj.(*corev1.Event)
			if !ok {
				return nil, fmt.Errorf("convert event: got %T", obj)
			}
			return eventFromStored(e), nil
		},
		ToStored: func(obj runtime.Object) (runtime.Object, error) {
			e, ok := obj.(*eventsv1.Event)
			if !ok {
				return nil, fmt.Errorf("convert event: got %T", obj)
			}
			return eventToStored(e), nil
		},
		FieldLabels: map[string]string{
			"regarding.kind":            "involvedObject.kind",
			"regarding.namespace":       "involvedObject.namespace",
			"regarding.name":            "involvedObject.name",
			"regarding.uid":             "involvedObject.uid",
			"regarding.apiVersion":      "involvedObject.apiVersion",
			"regarding.resourceVersion": "involvedObject.resourceVersion",
			"regarding.fieldPath":       "involvedObject.fieldPath",
			"reportingController":       "reportingComponent",
		},
		Validate:       check(validateNewEvent),
		ValidateCreate: check(validateNewEventCreate),
		ValidateUpdate: checkPair(validateNewEventUpdate),
	}
}

// convertedType is the type of the converted object if the original says one:
// items of a list do not.
func convertedType(t metav1.TypeMeta, apiVersion string) metav1.TypeMeta {
	if t == (metav1.TypeMeta{}) {
		return t
	}
	return metav1.TypeMeta{Kind: "Event", APIVersion: apiVersion}
}

func eventFromStored(e *corev1.Event) *eventsv1.Event {
	out := &eventsv1.Event{
		TypeMeta:                 convertedType(e.TypeMeta, eventsv1.SchemeGroupVersion.String()),
		ObjectMeta:               e.ObjectMeta,
		EventTime:                e.EventTime,
		ReportingController:      e.ReportingController,
		ReportingInstance:        e.ReportingInstance,
		Action:                   e.Action,
		Reason:                   e.Reason,
		Regarding:                e.InvolvedObject,
		Related:                  e.Related,
		Note:                     e.Message,
		Type:                     e.Type,
		DeprecatedSource:         e.Source,
		DeprecatedFirstTimestamp: e.FirstTimestamp,
		DeprecatedLastTimestamp:  e.LastTimestamp,
		DeprecatedCount:          e.Count,
	}
	if s := e.Series; s != nil {
		out.Series = &eventsv1.EventSeries{Count: s.Count, LastObservedTime: s.LastObservedTime}
	}
	return out
}

func eventToStored(e *eventsv1.Event) *corev1.Event {
	out := &corev1.Event{
		TypeMeta:            convertedType(e.TypeMeta, corev1.SchemeGroupVersion.String()),
		ObjectMeta:          e.ObjectMeta,
		InvolvedObject:      e.Regarding,
		Reason:              e.Reason,
		Message:             e.Note,
		Source:              e.DeprecatedSource,
		FirstTimestamp:      e.DeprecatedFirstTimestamp,
		LastTimestamp:       e.DeprecatedLastTimestamp,
		Count:               e.DeprecatedCount,
		Type:                e.Type,
		EventTime:           e.EventTime,
		Action:              e.Action,
		Related:             e.Related,
		ReportingController: e.ReportingController,
		ReportingInstance:   e.ReportingInstance,
	}
	if s := e.Series; s != nil {
		out.Series = &corev1.EventSeries{Count: s.Count, LastObservedTime: s.LastObservedTime}
	}
	return out
}
