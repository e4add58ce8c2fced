package informer

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func managed(n int) (out []metav1.ManagedFieldsEntry) {
	for range n {
		out = append(out, metav1.ManagedFieldsEntry{Manager: "m", Operation: "Update", FieldsV1: metav1.NewFieldsV1(strings.Repeat("f", 90))})
	}
	return out
}

func TestStripManagedLeavesTheRest(t *testing.T) {
	for name, pod := range map[string]*corev1.Pod{
		"none":  {ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{NodeName: "n"}},
		"one":   {ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: managed(1)}, Spec: corev1.PodSpec{NodeName: "n"}},
		"many":  {ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}, ManagedFields: managed(200)}, Status: corev1.PodStatus{Phase: "Running"}},
		"alone": {ObjectMeta: metav1.ObjectMeta{ManagedFields: managed(2)}},
		"empty": {},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := pod.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			size := len(data)
			data = stripManaged(data)
			if pod.ManagedFields != nil && size-len(data) < 90*len(pod.ManagedFields) {
				t.Errorf("of %d bytes, %d are left", size, len(data))
			}
			var got corev1.Pod
			if err := got.Unmarshal(data); err != nil {
				t.Fatal(err)
			}
			want := pod.DeepCopy()
			want.ManagedFields = nil
			if !reflect.DeepEqual(&got, want) {
				t.Errorf("it is\n%v\nand not\n%v", &got, want)
			}
		})
	}
}

func FuzzStripManaged(f *testing.F) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: managed(2)}, Spec: corev1.PodSpec{NodeName: "n"}}
	seed, err := pod.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte{0x0a, 0x03, 0x8a, 0x01, 0x00})
	f.Fuzz(func(t *testing.T, data []byte) {
		var want, got corev1.Pod
		if want.Unmarshal(append([]byte(nil), data...)) != nil {
			stripManaged(data) // must not panic
			return
		}
		want.ManagedFields = nil
		if err := got.Unmarshal(stripManaged(data)); err != nil {
			t.Fatal(err)
		}
		got.ManagedFields = nil
		if !reflect.DeepEqual(&got, &want) {
			t.Errorf("it is\n%v\nand not\n%v", &got, &want)
		}
	})
}

func TestOnlyBuiltinKindsAreStripped(t *testing.T) {
	if !knownWire[*corev1.Pod]() || !knownWire[*metav1.PartialObjectMetadata]() || knownWire[*unstructured.Unstructured]() {
		t.Error("wrong types are stripped")
	}
}

func TestUnion(t *testing.T) {
	all := Selection{}
	a, b := Selection{Namespace: "a"}, Selection{Namespace: "b"}
	ax := Selection{Namespace: "a", Labels: "x=1"}
	allX := Selection{Labels: "x=1"}
	for name, c := range map[string]struct{ given, want []Selection }{
		"apart":                 {[]Selection{a, b}, []Selection{a, b}},
		"all":                   {[]Selection{a, all, b, ax}, []Selection{all}},
		"a namespace":           {[]Selection{ax, a}, []Selection{a}},
		"a selector everywhere": {[]Selection{ax, allX, b}, []Selection{allX, b}},
		"nothing":               {nil, nil},
	} {
		if got := union(c.given); !reflect.DeepEqual(append([]Selection(nil), got...), c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	twice, err := canonical([]Selection{{Labels: "x=1"}, {Labels: "x = 1"}})
	if err != nil || len(twice) != 1 {
		t.Errorf("%v, %v", twice, err)
	}
}
