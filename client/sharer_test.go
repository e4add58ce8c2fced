package client

import (
	"math/rand"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/even-keel/evenkeel/server/kinds"
)

// TestSharedObjectsAreAsOthers decodes random objects of all built-in kinds with
// shared parts, and compares with the types' own decoders: at the end, for later
// objects must not change earlier ones.
func TestSharedObjectsAreAsOthers(t *testing.T) {
	const seed = 11
	scheme, shared := kinds.Scheme(), 0
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), serializer.NewCodecFactory(scheme))
	for gvk, goType := range scheme.AllKnownTypes() {
		if !strings.HasPrefix(goType.PkgPath(), builtinTypes) || strings.HasSuffix(gvk.Kind, "List") {
			continue
		}
		plans := protoPlans{made: map[reflect.Type]*protoPlan{}}
		plan := plans.of(goType)
		if plan == nil {
			t.Logf("%s is not shared", gvk)
			continue
		}
		var s sharing
		type pair struct{ want, got any }
		var all []pair
		for range 4 {
			obj := reflect.New(goType)
			fill.Fill(obj.Interface())
			data, err := obj.Interface().(message).Marshal()
			if err != nil {
				t.Fatalf("%s, seed %d: %v", gvk, seed, err)
			}
			for range 2 { // the second time from what is remembered
				want, got := reflect.New(goType), reflect.New(goType)
				if err := want.Interface().(message).Unmarshal(data); err != nil {
					t.Fatal(err)
				}
				own := append([]byte{}, data...)
				if err := s.message(own, got.UnsafePointer(), plan); err != nil {
					t.Fatalf("%s, seed %d: %v", gvk, seed, err)
				}
				clear(own) // of which nothing may be kept
				all = append(all, pair{want.Interface(), got.Interface()})
			}
		}
		shared++
		for _, p := range all {
			if !sameObject(p.want, p.got) {
				t.Errorf("%s, seed %d:\ntheirs %+v\nours   %+v", gvk, seed, p.want, p.got)
			}
		}
	}
	if shared < 50 {
		t.Errorf("only %d kinds are shared", shared)
	}
}

// sameObject compares as they are sent: quantities remember how they are written.
func sameObject(a, b any) bool {
	first, err := a.(message).Marshal()
	second, err2 := b.(message).Marshal()
	return err == nil && err2 == nil && string(first) == string(second) && reflect.TypeOf(a) == reflect.TypeOf(b)
}

func TestEqualPartsAreDecodedOnce(t *testing.T) {
	pods := Of[*corev1.Pod](&Conn{})
	pods.codec.proto = true
	s := pods.Sharer(true)
	decode := func(name string) *corev1.Pod {
		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{"app": "web"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody"}},
			},
			Spec: corev1.PodSpec{
				NodeName:                      "node-1",
				Containers:                    []corev1.Container{{Name: "app", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}},
				SecurityContext:               &corev1.PodSecurityContext{SupplementalGroups: []int64{1}},
				TerminationGracePeriodSeconds: new(int64(30)),
			},
		}
		data, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, bytes, err := s.Decode(Raw{Protobuf, data})
		if err != nil || bytes < int(reflect.TypeFor[corev1.Pod]().Size()) {
			t.Fatalf("%d bytes, %v", bytes, err)
		}
		return got
	}
	a, b := decode("a"), decode("b")
	if a.Name != "a" || b.Name != "b" || a.ManagedFields != nil || a.Kind != "Pod" {
		t.Errorf("a is %+v", a)
	}
	for part, one := range map[string]bool{
		"containers":       &a.Spec.Containers[0] == &b.Spec.Containers[0],
		"security context": a.Spec.SecurityContext == b.Spec.SecurityContext,
		"grace period":     a.Spec.TerminationGracePeriodSeconds == b.Spec.TerminationGracePeriodSeconds,
		"labels":           reflect.ValueOf(a.Labels).Pointer() == reflect.ValueOf(b.Labels).Pointer(),
	} {
		if !one {
			t.Errorf("the %s are there twice", part)
		}
	}
}

// FuzzShared holds the decoder of shared objects against the type's own, on
// messages that no server sends.
func FuzzShared(f *testing.F) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}, {Name: "d"}}}}
	data, err := pod.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(append(data, data...))
	plans := protoPlans{made: map[reflect.Type]*protoPlan{}}
	plan := plans.of(reflect.TypeFor[corev1.Pod]())
	var s sharing
	f.Fuzz(func(t *testing.T, data []byte) {
		var want, got corev1.Pod
		failed := want.Unmarshal(data)
		if s.message(data, reflect.ValueOf(&got).UnsafePointer(), plan) != nil {
			return // left to Unmarshal
		}
		if failed != nil {
			t.Fatalf("ours reads what theirs refuses: %v", failed)
		}
		if !sameObject(&want, &got) {
			t.Fatalf("theirs %+v\nours   %+v", want, got)
		}
	})
}
