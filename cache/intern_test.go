package cache

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unsafe"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// fill gives a value random content of few different strings and numbers, so
// that much of it is equal to something else.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	if v.Type() == quantityType {
		v.Set(reflect.ValueOf(resource.MustParse([]string{"1", "1000m", "2Gi", "2147483648", "0.1"}[r.IntN(5)])))
		return
	}
	if v.Type() == reflect.TypeFor[intstr.IntOrString]() {
		v.Set(reflect.ValueOf(intstr.FromString("http")))
		return
	}
	if plainTypes[v.Type()] || v.Type() == reflect.TypeFor[metav1.FieldsV1]() || depth > 9 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("s", r.IntN(3)) + []string{"", "a", "b"}[r.IntN(3)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.IntN(3)))
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(3)))
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if n := r.IntN(4); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n+r.IntN(2)))
			for i := range n {
				fill(r, v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		fillMap(r, v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(r, v.Field(i), depth+1)
			}
		}
	}
}

func fillMap(r *rand.Rand, v reflect.Value, depth int) {
	if r.IntN(3) == 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range r.IntN(4) {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(r, key, depth+1)
		fill(r, value, depth+1)
		v.SetMapIndex(key, value)
	}
}

func TestSharingChangesNoObject(t *testing.T) {
	r := seeded(t)
	for _, like := range []Object{&corev1.Pod{}, &appsv1.Deployment{}, &corev1.Node{}, &corev1.Secret{}, &corev1.ConfigMap{},
		&corev1.PersistentVolumeClaim{}, &networkingv1.Ingress{}, &metav1.PartialObjectMetadata{}} {
		t.Run(fmt.Sprintf("%T", like), func(t *testing.T) {
			in := NewInterner()
			type pair struct {
				shared Object
				copied runtime.Object
			}
			var all []pair
			for range 60 {
				obj := reflect.New(reflect.TypeOf(like).Elem())
				fill(r, obj.Elem(), 0)
				shared := obj.Interface().(Object)
				if len(all) > 0 && r.IntN(3) == 0 { // a later revision of one that is known
					shared = all[r.IntN(len(all))].copied.DeepCopyObject().(Object)
					field := reflect.ValueOf(shared).Elem()
					fill(r, field.Field(r.IntN(field.NumField())), 1)
				}
				copied := shared.DeepCopyObject()
				switch n := r.IntN(5); {
				case n == 0:
					in.Strings(shared)
				case n < 3 && len(all) > 0:
					in.shareWith(all[len(all)-1-r.IntN(min(3, len(all)))].shared, shared)
				default:
					in.Share(shared)
				}
				all = append(all, pair{shared, copied})
			}
			for _, p := range all { // later objects must not have changed earlier ones
				if !equality.Semantic.DeepEqual(p.shared, p.copied) {
					t.Fatalf("%v\nbecame %v", p.copied, p.shared)
				}
				sameJSON(t, p.shared, p.copied)
			}
		})
	}
}

func sameJSON(t *testing.T, a, b any) {
	t.Helper()
	first, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(second) {
		t.Fatalf("%s\nand %s", first, second)
	}
}

func TestSharingChangesNoUnstructuredObject(t *testing.T) {
	r := seeded(t)
	in := NewInterner()
	var objs []*unstructured.Unstructured
	var copies []map[string]any
	for range 300 {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": randomJSON(r, 0), "status": randomJSON(r, 0)}}
		if len(objs) > 0 && r.IntN(2) == 0 {
			old := objs[r.IntN(len(objs))]
			u.Object["spec"] = runtime.DeepCopyJSONValue(old.Object["spec"])
			copies = append(copies, runtime.DeepCopyJSON(u.Object))
			in.shareWith(old, u)
		} else {
			copies = append(copies, runtime.DeepCopyJSON(u.Object))
			in.Share(u)
		}
		objs = append(objs, u)
	}
	for i, u := range objs {
		if !reflect.DeepEqual(u.Object, copies[i]) {
			t.Fatalf("%v\nbecame %v", copies[i], u.Object)
		}
	}
}

func randomJSON(r *rand.Rand, depth int) any {
	switch n := r.IntN(9); {
	case n < 2 && depth < 5:
		m := map[string]any{}
		for range r.IntN(4) {
			m[string('a'+rune(r.IntN(4)))] = randomJSON(r, depth+1)
		}
		return m
	case n < 4 && depth < 5:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, randomJSON(r, depth+1))
		}
		return list
	case n == 4:
		return int64(r.IntN(3))
	case n == 5:
		return float64(r.IntN(3)) / 2
	case n == 6:
		return r.IntN(2) == 0
	case n == 7:
		return nil
	}
	return strings.Repeat("x", r.IntN(3))
}

func podOfSet(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: strings.Clone(name), Labels: map[string]string{"app": strings.Clone("web")}},
		Spec: corev1.PodSpec{
			NodeName: strings.Clone("node-1"),
			Containers: append(make([]corev1.Container, 0, 4), corev1.Container{
				Env:       []corev1.EnvVar{{Name: strings.Clone("LEVEL"), Value: strings.Clone("info")}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			}),
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(7))},
		},
	}
}

func TestEqualPartsBecomeOne(t *testing.T) {
	in := NewInterner()
	a, b := podOfSet("a"), podOfSet("b")
	first, second := in.Share(a), in.Share(b)
	if unsafe.StringData(a.Spec.NodeName) != unsafe.StringData(b.Spec.NodeName) {
		t.Error("the node's name is there twice")
	}
	if &a.Spec.Containers[0] != &b.Spec.Containers[0] {
		t.Error("the containers are there twice")
	}
	if a.Spec.SecurityContext != b.Spec.SecurityContext {
		t.Error("the security context is there twice")
	}
	if reflect.ValueOf(a.Labels).Pointer() != reflect.ValueOf(b.Labels).Pointer() {
		t.Error("the labels are there twice")
	}
	if cap(a.Spec.Containers) != 1 {
		t.Errorf("there is room for %d containers", cap(a.Spec.Containers))
	}
	if own := int(unsafe.Sizeof(*b)); second != own || first <= second {
		t.Errorf("the first pod adds %d bytes, and the second %d, not %d", first, second, own)
	}
}

func TestARevisionSharesWithTheLast(t *testing.T) {
	store := New(Options[*corev1.Pod]{Interner: NewInterner()})
	store.Set(podOfSet("a"))
	first, _ := store.Get("", "a")
	before := store.Stats().ObjectBytes
	store.opts.Interner = NewInterner() // which knows nothing
	next := podOfSet("a")
	next.Status.Phase = "Running"
	store.Set(next)
	second, _ := store.Get("", "a")
	if first == second || second.Status.Phase != "Running" || &first.Spec.Containers[0] != &second.Spec.Containers[0] {
		t.Error("the revisions do not share the containers")
	}
	if grown := store.Stats().ObjectBytes - before; grown < 0 || grown > 32 {
		t.Errorf("one more word adds %d bytes", grown)
	}
	store.Set(second)
	if after := store.Stats().ObjectBytes; after-before > 32 {
		t.Errorf("the same object again adds %d bytes", after-before)
	}
}

func TestUnstructuredPartsBecomeOne(t *testing.T) {
	in := NewInterner()
	make := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}}}
	}
	a, b := make(), make()
	in.Share(a)
	in.Share(b)
	if reflect.ValueOf(a.Object["spec"]).Pointer() != reflect.ValueOf(b.Object["spec"]).Pointer() {
		t.Error("the spec is there twice")
	}
}

// A reader that writes a quantity as a string must not write to it.
func TestQuantitiesAreReadyToBeRead(t *testing.T) {
	limit := resource.NewQuantity(1<<30, resource.BinarySI)
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: limit}},
	}}}}
	NewInterner().Share(pod)
	before := *pod.Spec.Volumes[0].EmptyDir.SizeLimit
	_ = pod.Spec.Volumes[0].EmptyDir.SizeLimit.String()
	if before != *pod.Spec.Volumes[0].EmptyDir.SizeLimit {
		t.Error("the first reader changed it")
	}
}

func TestObjectsWithAStateOfTheirOwnAreNotShared(t *testing.T) {
	type locked struct {
		sync.Mutex
		hidden int
	}
	type holder struct {
		corev1.ConfigMap
		Lock *locked
	}
	in := NewInterner()
	a, b := &holder{Lock: &locked{hidden: 1}}, &holder{Lock: &locked{hidden: 1}}
	in.Share(a)
	in.Share(b)
	if a.Lock == b.Lock {
		t.Error("two locks became one")
	}
}

func TestEqualBytesOfDifferentTypesAreNotOne(t *testing.T) {
	type holder struct {
		corev1.ConfigMap
		Signed   *int64
		Unsigned *uint64
	}
	h := &holder{Signed: new(int64(7)), Unsigned: new(uint64(7))}
	NewInterner().Share(h)
	if unsafe.Pointer(h.Signed) == unsafe.Pointer(h.Unsigned) {
		t.Error("an int64 became a uint64")
	}
}

func TestAnInternerForgetsWhatItSawOnceAndKeepsTheRest(t *testing.T) {
	in := NewInterner()
	often := in.String(strings.Clone("often"))
	in.String(strings.Clone("often"))
	for i := range 20 * maxSlots {
		in.String(fmt.Sprint("once ", i))
	}
	if n := len(in.all[0].strings.slots); n != maxSlots {
		t.Errorf("%d slots, want %d", n, maxSlots)
	}
	if again := in.String(strings.Clone("often")); unsafe.StringData(again) != unsafe.StringData(often) {
		t.Error("it forgot what it had seen twice")
	}
	if s := strings.Repeat("long", maxString); unsafe.StringData(in.String(s)) != unsafe.StringData(s) {
		t.Error("a long string was shared")
	}
}

func TestStoresMayShareAnInterner(t *testing.T) {
	in := NewInterner()
	var writers sync.WaitGroup
	for range 4 {
		store := New(Options[*corev1.Pod]{Interner: in})
		writers.Go(func() {
			for i := range 200 {
				store.Set(podOfSet(fmt.Sprint("pod-", i)))
				for pod := range store.List(Label("app", "web")) {
					_ = pod.Spec.Containers[0].Resources.Limits.Cpu().String()
				}
			}
		})
	}
	writers.Wait()
}
