package patch

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// ownedPod is a Pod as it is stored.
func ownedPod(t testing.TB, fields *Fields) *corev1.Pod {
	t.Helper()
	pod := aPod()
	if _, err := fields.Update(nil, pod, "creator"); err != nil {
		t.Fatal(err)
	}
	pod.UID = "u"
	return pod
}

func TestUpdateTakesFieldsOver(t *testing.T) {
	fields := testFields(NewTypes(nil), configMapKind)
	live := aConfigMap()
	fields.Update(nil, live, "a")
	live.UID = "u"
	obj := live.DeepCopy()
	delete(obj.Data, "other")
	obj.Data["key"], obj.Data["new"] = "changed", "1"
	fields.Update(live, obj, "b")
	want := []string{
		`a Update "" v1 2020-01-02T03:04:05Z {"f:data":{},"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`,
		`b Update "" v1 2020-01-02T03:04:05Z {"f:data":{"f:key":{},"f:new":{}}}`,
	}
	if diff := cmp.Diff(want, owned(obj)); diff != "" {
		t.Error(diff)
	}
}

// A client may drop all managed fields, or leave them out.
func TestUpdateReadsManagedFieldsOfTheClient(t *testing.T) {
	fields := testFields(NewTypes(nil), podKind, "status")
	live := ownedPod(t, fields)
	stored := owned(live)
	many := metav1.ManagedFieldsEntry{Manager: "x", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(
		`{"f:metadata":{"f:labels":{"f:` + strings.Repeat("x", maxForeign) + `":{}}}}`)}
	bad := metav1.ManagedFieldsEntry{Manager: "x", Operation: "Nonsense"}
	tests := map[string]struct {
		sent []metav1.ManagedFieldsEntry
		want []string
	}{
		"as they were": {live.ManagedFields, stored},
		"none":         {nil, stored},
		"dropped":      {[]metav1.ManagedFieldsEntry{{}}, nil},
		"unreadable":   {[]metav1.ManagedFieldsEntry{bad}, stored},
		"too many":     {[]metav1.ManagedFieldsEntry{many}, stored},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			obj := live.DeepCopy()
			obj.ManagedFields = test.sent
			if _, err := fields.Update(live, obj, "m"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, owned(obj)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A write does not fail because nobody can tell who owns what.
func TestUpdateThatFailsKeepsManagedFields(t *testing.T) {
	fields := testFields(NewTypes(nil), podKind, "status")
	live := ownedPod(t, fields)
	tooMany := live.DeepCopy()
	for i := range 6000 {
		tooMany.Finalizers = append(tooMany.Finalizers, fmt.Sprint(i))
	}
	for name, obj := range map[string]*corev1.Pod{"too many items": tooMany} {
		t.Run(name, func(t *testing.T) {
			got, err := fields.Update(live, obj, "m")
			if err == nil || got != runtime.Object(obj) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(owned(live), owned(obj)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The library panics over values that have no JSON form.
func TestUpdateOutlivesAPanic(t *testing.T) {
	fields := testFields(NewTypes(nil), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ControllerRevision"})
	live := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{}`)}}
	fields.Update(nil, live, "m")
	live.UID = "u"
	obj := live.DeepCopy()
	obj.Data.Raw = []byte(`{bad`)
	got, err := fields.Update(live, obj, "m2")
	if err == nil || !strings.Contains(err.Error(), "panic") || got != runtime.Object(obj) {
		t.Errorf("got %v, %v", got, err)
	}
	if diff := cmp.Diff(owned(live), owned(obj)); diff != "" || obj.ManagedFields == nil {
		t.Error(diff)
	}
	if _, err := fields.Apply(obj, []byte(`{"apiVersion":"apps/v1","kind":"ControllerRevision","revision":1}`), "m", false); err == nil {
		t.Error("applied")
	}
}

// The library refuses items without a key; so does the short way.
func TestItemsWithoutAKey(t *testing.T) {
	fields := testFields(NewTypes(nil), schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"})
	obj := &corev1.ServiceAccount{Secrets: []corev1.ObjectReference{{Kind: "Secret"}}}
	_, err := fields.Update(nil, obj, "m")
	if err == nil || !strings.Contains(err.Error(), "omits all key fields") {
		t.Errorf("got %v", err)
	}
	if obj.ManagedFields != nil {
		t.Errorf("got %v", owned(obj))
	}
}

// Many writers of a kind that nobody has written before: run with -race.
func TestFirstWritesAreSafe(t *testing.T) {
	fields := testFields(NewTypes(nil), podKind, "status")
	want := owned(ownedPod(t, testFields(NewTypes(nil), podKind, "status")))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			pod := aPod()
			if _, err := fields.Update(nil, pod, "creator"); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, owned(pod)); diff != "" {
				t.Error(diff)
			}
			pod.UID = "u"
			if _, err := fields.Apply(pod, []byte(`{"apiVersion":"v1","kind":"Pod","spec":{"nodeName":"n"}}`), "m", false); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Applying what is there already returns the object with its type, too.
func TestApplyThatChangesNothing(t *testing.T) {
	fields := testFields(NewTypes(nil), configMapKind)
	doc := []byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"1"}}`)
	live, err := fields.Apply(nil, doc, "m", false)
	if err != nil {
		t.Fatal(err)
	}
	live.(*corev1.ConfigMap).UID = "u"
	live.(*corev1.ConfigMap).TypeMeta = metav1.TypeMeta{}
	got, err := fields.Apply(live, doc, "m", false)
	if err != nil {
		t.Fatal(err)
	}
	if !SameButForTimes(got, withKind(live, configMapKind)) || got.GetObjectKind().GroupVersionKind() != configMapKind {
		t.Errorf("got %v", got)
	}
	if kind := live.GetObjectKind().GroupVersionKind(); !kind.Empty() {
		t.Errorf("live has become %v", kind)
	}
}

func TestTimesAreWholeAndNew(t *testing.T) {
	fields := NewFields(NewTypes(nil), scheme.Scheme, Endpoint{Kind: configMapKind})
	before := time.Now().Add(-time.Second)
	obj := aConfigMap()
	fields.Update(nil, obj, "")
	at := obj.ManagedFields[0].Time
	if at.Before(&metav1.Time{Time: before}) || at.Nanosecond() != 0 || at.Location() != time.UTC {
		t.Errorf("got %v", at)
	}
	if manager := obj.ManagedFields[0].Manager; manager != "unknown" {
		t.Errorf("manager %q", manager)
	}
}

func TestNothingOwned(t *testing.T) {
	fields := testFields(NewTypes(nil), configMapKind)
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", UID: "c", Generation: 1}}
	fields.Update(nil, obj, "m")
	if obj.ManagedFields != nil {
		t.Errorf("got %v", owned(obj))
	}
}

func TestKeepTimes(t *testing.T) {
	fields := testFields(NewTypes(nil), podKind, "status")
	live := ownedPod(t, fields)
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing":               {func(*corev1.Pod) {}, true},
		"an empty list":         {func(p *corev1.Pod) { p.Spec.HostAliases = []corev1.HostAlias{} }, true},
		"a field":               {func(p *corev1.Pod) { p.Spec.NodeName = "n" }, false},
		"a manager":             {func(p *corev1.Pod) { p.ManagedFields[0].Manager = "other" }, false},
		"the fields of one":     {func(p *corev1.Pod) { p.ManagedFields[0].FieldsV1.SetRawString(`{}`) }, false},
		"no managers":           {func(p *corev1.Pod) { p.ManagedFields = nil }, false},
		"one more of them":      {func(p *corev1.Pod) { p.ManagedFields = append(p.ManagedFields, p.ManagedFields[0]) }, false},
		"the time of one to no": {func(p *corev1.Pod) { p.ManagedFields[0].Time = nil }, true},
	}
	for name, test := range tests {
		for form, of := range map[string]func(*corev1.Pod) runtime.Object{
			"struct": func(p *corev1.Pod) runtime.Object { return p },
			"map": func(p *corev1.Pod) runtime.Object {
				m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
				if err != nil {
					t.Fatal(err)
				}
				return &unstructured.Unstructured{Object: m}
			},
		} {
			t.Run(name+" as "+form, func(t *testing.T) {
				pod := live.DeepCopy()
				pod.ManagedFields[0].Time = &metav1.Time{Time: aTime.Add(time.Hour)}
				test.change(pod)
				obj := of(pod)
				if got := KeepTimes(obj, of(live)); got != test.want {
					t.Fatalf("got %v", got)
				}
				if test.want && !entriesOf(obj)[0].Time.Equal(live.ManagedFields[0].Time) {
					t.Errorf("the time is %v", entriesOf(obj)[0].Time)
				}
			})
		}
	}
}
