package patch

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// applyTo is Apply to a Pod that may be none.
func applyTo(f *Fields, live *corev1.Pod, doc []byte, force bool) (runtime.Object, error) {
	if live == nil {
		return f.Apply(nil, doc, "m", force)
	}
	return f.Apply(live, doc, "m", force)
}

func TestApplyRefuses(t *testing.T) {
	fields := testFields(NewTypes(nil), podKind, "status")
	live := aPod()
	live.UID = "u"
	fields.Update(nil, live, "creator")
	tests := map[string]struct {
		doc  string
		code int32
		text string
	}{
		"what is no object":  {"- 1", 400, "error decoding YAML: "},
		"what is no YAML":    {"a: [", 400, "error decoding YAML: "},
		"what is too deep":   {strings.Repeat(`{"a":`, 1001) + `1` + strings.Repeat(`}`, 1001), 400, "error decoding patch: exceeded max depth of 1000"},
		"deep YAML":          {"a: " + strings.Repeat(`[`, 1001) + strings.Repeat(`]`, 1001), 400, "error decoding patch: exceeded max depth of 1000"},
		"no kind":            {`{"metadata":{"name":"web-0"}}`, 400, "invalid object type: /, Kind="},
		"another kind":       {`{"apiVersion":"v1","kind":"Node"}`, 400, "invalid object type: /v1, Kind=Node"},
		"another version":    {`{"apiVersion":"v2","kind":"Pod"}`, 400, "invalid object type: /v2, Kind=Pod"},
		"managed fields":     {`{"apiVersion":"v1","kind":"Pod","metadata":{"managedFields":[]}}`, 400, "metadata.managedFields must be nil"},
		"a conflict":         {`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"app":"other"}}}`, 409, `Apply failed with 1 conflict: conflict with "creator" using v1: .metadata.labels.app`},
		"an undeclared name": {`{"apiVersion":"v1","kind":"Pod","spec":{"nonsense":1}}`, 0, "failed to create typed patch object (/; /v1, Kind=Pod): .spec.nonsense: field not declared in schema"},
		"too long a list": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"finalizers":["a"` + strings.Repeat(`,"a"`, 6000) + `]}}`, 413,
			"Request entity too large: too many items in a list or map to be tracked",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := fields.Apply(live, []byte(test.doc), "m", false)
			if err == nil {
				t.Fatal("accepted")
			}
			text := err.Error()
			var status apierrors.APIStatus
			if errors.As(err, &status) {
				text = status.Status().Message
				if status.Status().Code != test.code {
					t.Errorf("code %d, want %d", status.Status().Code, test.code)
				}
			} else if test.code != 0 {
				t.Errorf("no Status: %v", err)
			}
			if !strings.HasPrefix(text, test.text) {
				t.Errorf("got %q, want %q", text, test.text)
			}
		})
	}
}

// What was written before there were managed fields belongs to nobody who
// applies, and is not lost.
func TestApplyToWhatNobodyOwns(t *testing.T) {
	fields := testFields(NewTypes(nil), configMapKind)
	live := aConfigMap()
	live.UID = "u"
	got, err := fields.Apply(live, []byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"new":"1"}}`), "m", false)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`m Apply "" v1 2020-01-02T03:04:05Z {"f:data":{"f:new":{}}}`,
		`before-first-apply Update "" v1 2020-01-02T03:04:05Z {"f:data":{".":{},"f:key":{},"f:other":{}},"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`,
	}
	if diff := cmp.Diff(want, owned(got)); diff != "" {
		t.Error(diff)
	}
	if data := got.(*corev1.ConfigMap).Data; len(data) != 3 || len(live.Data) != 2 {
		t.Errorf("got %v, live %v", data, live.Data)
	}
}

func TestStatusIsOwnedByItsEndpoint(t *testing.T) {
	types := NewTypes(nil)
	main := testFields(types, podKind, "status")
	status := NewFields(types, scheme.Scheme, Endpoint{Kind: podKind, Subresource: "status", Reset: []string{"spec"}, Now: func() time.Time { return aTime.Add(time.Hour) }})
	live := aPod()
	live.Labels, live.Annotations, live.Spec = nil, nil, corev1.PodSpec{NodeName: "n"}
	live.Status.Phase = corev1.PodPending
	main.Update(nil, live, "m")
	live.UID = "u"
	obj := live.DeepCopy()
	obj.Labels = map[string]string{"a": "b"}
	obj.Spec.NodeName, obj.Status.Phase = "other", corev1.PodRunning
	obj.ManagedFields = nil // a status update cannot take managed fields away
	if _, err := status.Update(live, obj, "m"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`m Update "" v1 2020-01-02T03:04:05Z {"f:spec":{"f:nodeName":{}}}`,
		`m Update "status" v1 2020-01-02T04:04:05Z {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:status":{"f:phase":{}}}`,
	}
	if diff := cmp.Diff(want, owned(obj)); diff != "" {
		t.Error(diff)
	}
}

// What another version of a kind owns is converted, or forgotten.
func TestOwnersInOtherVersions(t *testing.T) {
	hpa := schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
	v1 := schema.GroupVersion{Group: "autoscaling", Version: "v1"}
	tests := map[string]struct {
		convert func(runtime.Object, schema.GroupVersion) (runtime.Object, error)
		want    []string
	}{
		"no conversion": {nil, []string{`m Update "" autoscaling/v2 2020-01-02T03:04:05Z {"f:spec":{"f:maxReplicas":{}}}`}},
		"conversion": {
			func(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
				u := &unstructured.Unstructured{Object: map[string]any{}}
				var err error
				if u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err != nil {
					return nil, err
				}
				u.SetGroupVersionKind(to.WithKind("HorizontalPodAutoscaler"))
				return versions{testFields(nil, to.WithKind("HorizontalPodAutoscaler"))}.typed(u, to.WithKind("HorizontalPodAutoscaler"))
			},
			[]string{
				`old Update "" autoscaling/v1 2020-01-02T03:04:05Z {"f:spec":{"f:minReplicas":{}}}`,
				`m Update "" autoscaling/v2 2020-01-02T03:04:05Z {"f:spec":{"f:maxReplicas":{}}}`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			two, now := int32(2), metav1.Time{Time: aTime.Add(-time.Second)}
			live := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: &two, MaxReplicas: 3}}
			live.UID = "u"
			live.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: "old", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1.String(), Time: &now, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:maxReplicas":{},"f:minReplicas":{}}}`),
			}}
			obj := live.DeepCopy()
			obj.Spec.MaxReplicas = 4
			fields := NewFields(NewTypes(nil), scheme.Scheme, Endpoint{Kind: hpa, Convert: test.convert, Now: func() time.Time { return aTime }})
			if _, err := fields.Update(live, obj, "m"); err != nil {
				t.Fatal(err)
			}
			got := owned(obj)
			for i := range got {
				got[i] = strings.Replace(got[i], "03:04:04Z", "03:04:05Z", 1)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Custom resources are maps; their types are deduced.
func TestCustomResources(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	fields := NewFields(NewTypes(nil), scheme.Scheme, Endpoint{
		Kind: gvk, Reset: []string{"status"}, Now: func() time.Time { return aTime },
		New: func() runtime.Object { return &unstructured.Unstructured{} },
	})
	doc := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":3},"status":{"ready":1}}`
	live, err := fields.Apply(nil, []byte(doc), "m1", false)
	if err != nil {
		t.Fatal(err)
	}
	obj := live.DeepCopyObject().(*unstructured.Unstructured)
	obj.SetUID("u")
	unstructured.SetNestedField(obj.Object, "red", "spec", "color")
	if _, err := fields.Update(live, obj, "m2"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`m1 Apply "" example.com/v1 2020-01-02T03:04:05Z {"f:spec":{".":{},"f:size":{}}}`,
		`m2 Update "" example.com/v1 2020-01-02T03:04:05Z {"f:spec":{"f:color":{}}}`,
	}
	if diff := cmp.Diff(want, owned(obj)); diff != "" {
		t.Error(diff)
	}
}
