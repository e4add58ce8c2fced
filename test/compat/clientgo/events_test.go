package clientgo

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, holds); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// TestEventRecorder records events of events.k8s.io; repeated ones become a
// series. Both groups show them.
func TestEventRecorder(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		p := must(c.CoreV1().Pods(ns).Create(t.Context(), pod("one"), metav1.CreateOptions{}))(t)
		broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.EventsV1()})
		check(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
		defer broadcaster.Shutdown()
		recorder := broadcaster.NewRecorder(scheme.Scheme, "compat")
		recorder.Eventf(p, nil, corev1.EventTypeNormal, "Started", "Starting", "run %d", 1)
		var first *eventsv1.Event
		eventually(t, "an event", func(ctx context.Context) (bool, error) {
			list, err := c.EventsV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=Started"})
			if err == nil && len(list.Items) == 1 {
				first = &list.Items[0]
			}
			return first != nil, err
		})
		if first.Note != "run 1" || first.Regarding.Name != "one" || first.ReportingController != "compat" || first.Action != "Starting" {
			t.Errorf("recorded %+v", first)
		}
		recorder.Eventf(p, nil, corev1.EventTypeNormal, "Started", "Starting", "run %d", 1)
		eventually(t, "a series", func(ctx context.Context) (bool, error) {
			got, err := c.EventsV1().Events(ns).Get(ctx, first.Name, metav1.GetOptions{})
			return err == nil && got.Series != nil && got.Series.Count == 2, err
		})
		core := must(c.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.kind=Pod,involvedObject.name=one,type=Normal,reportingComponent=compat",
		}))(t)
		if len(core.Items) != 1 || core.Items[0].Message != "run 1" {
			t.Errorf("as core/v1: %+v", core.Items)
		}
		check(t, c.EventsV1().Events(ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	})
}

// TestLegacyEventRecorder records core events, which are counted and, when
// similar ones come in numbers, combined.
func TestLegacyEventRecorder(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		p := must(c.CoreV1().Pods(ns).Create(t.Context(), pod("one"), metav1.CreateOptions{}))(t)
		broadcaster := record.NewBroadcaster(record.WithContext(t.Context()))
		broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: c.CoreV1().Events("")})
		defer broadcaster.Shutdown()
		recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "compat"})
		for range 3 {
			recorder.Event(p, corev1.EventTypeWarning, "BackOff", "again")
		}
		for i := range 12 {
			recorder.Eventf(p, corev1.EventTypeNormal, "Pulled", "image %d", i)
		}
		eventually(t, "a counted and a combined event", func(ctx context.Context) (bool, error) {
			list, err := c.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: fmt.Sprintf("involvedObject.uid=%s,source=compat", p.UID)})
			if err != nil {
				return false, err
			}
			counted, combined := false, false
			for _, e := range list.Items {
				counted = counted || e.Reason == "BackOff" && e.Count == 3
				combined = combined || strings.HasPrefix(e.Message, "(combined from similar events)")
			}
			return counted && combined, nil
		})
	})
}
