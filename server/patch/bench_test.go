package patch

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// aPod has about 1.5 kB in JSON, as a server sees it after defaulting.
func aPod() *corev1.Pod {
	yes, grace := true, int64(30)
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-0", Namespace: "default", Labels: map[string]string{"app": "web", "tier": "front"},
			Annotations: map[string]string{"example.com/a": "b"},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "c", Image: "nginx:1.25", ImagePullPolicy: corev1.PullIfNotPresent,
				Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP, Name: "http"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi"),
				}},
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
				VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/data"}},
			}},
			Volumes:       []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: "default-scheduler",
			TerminationGracePeriodSeconds: &grace, SecurityContext: &corev1.PodSecurityContext{}, EnableServiceLinks: &yes,
		},
	}
	for i := range 6 {
		c := &pod.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: "a value of some length"})
	}
	return pod
}

func aConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", Labels: map[string]string{"app": "web"}},
		Data:       map[string]string{"key": "value", "other": "value"},
	}
}

func benchmarkCreate(b *testing.B, fields *Fields, obj apiruntime.Object, update func(obj apiruntime.Object) error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		b.Fatal(err)
	}
	fields.init()
	b.ReportAllocs()
	for b.Loop() {
		accessor.SetManagedFields(nil)
		if err := update(obj); err != nil {
			b.Fatal(err)
		}
	}
	if len(accessor.GetManagedFields()) != 1 {
		b.Fatal("no managed fields")
	}
}

func BenchmarkCreate(b *testing.B) {
	for name, obj := range map[string]apiruntime.Object{"Pod": aPod(), "ConfigMap": aConfigMap()} {
		fields := testFields(NewTypes(nil), obj.GetObjectKind().GroupVersionKind(), "status")
		library := plain(fields)
		b.Run(name, func(b *testing.B) {
			benchmarkCreate(b, fields, obj, func(obj apiruntime.Object) error {
				_, err := fields.Update(nil, obj, "m")
				return err
			})
		})
		b.Run(name+"/library", func(b *testing.B) {
			benchmarkCreate(b, fields, obj, func(obj apiruntime.Object) error {
				_, err := viaLibrary(library, nil, obj, "m")
				return err
			})
		})
	}
}

// BenchmarkUpdate is one manager changing a label that another owns.
func BenchmarkUpdate(b *testing.B) {
	fields := testFields(NewTypes(nil), podKind, "status")
	library := plain(fields)
	live := aPod()
	if _, err := fields.Update(nil, live, "creator"); err != nil {
		b.Fatal(err)
	}
	live.UID = "x"
	obj := live.DeepCopy()
	obj.Labels["app"] = "changed"
	for name, update := range map[string]func() error{
		"Pod":         func() error { _, err := fields.Update(live, obj, "m"); return err },
		"Pod/library": func() error { _, err := viaLibrary(library, live, obj, "m"); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				obj.ManagedFields = nil
				if err := update(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFirstUse is a server's first write of a kind.
func BenchmarkFirstUse(b *testing.B) {
	for name, obj := range map[string]apiruntime.Object{"Pod": aPod(), "ConfigMap": aConfigMap()} {
		b.Run(name, func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var kept []*Fields
			for b.Loop() {
				fields := testFields(NewTypes(nil), obj.GetObjectKind().GroupVersionKind(), "status")
				if _, err := fields.Update(nil, obj.DeepCopyObject(), "m"); err != nil {
					b.Fatal(err)
				}
				kept = append(kept, fields)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(kept)), "heap-B/kind")
			runtime.KeepAlive(kept)
		})
	}
}

// BenchmarkApply is a manager applying a label to a Pod of another.
func BenchmarkApply(b *testing.B) {
	fields := testFields(NewTypes(nil), podKind, "status")
	live := ownedPod(b, fields)
	doc := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","labels":{"new":"1"}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fields.Apply(live, doc, "m", false); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPatch is each kind of patch changing a label of a Pod.
func BenchmarkPatch(b *testing.B) {
	doc, err := json.Marshal(ownedPod(b, testFields(NewTypes(nil), podKind, "status")))
	if err != nil {
		b.Fatal(err)
	}
	for name, apply := range map[string]func() ([]byte, error){
		"JSON": func() ([]byte, error) {
			return JSON(doc, []byte(`[{"op":"replace","path":"/metadata/labels/app","value":"x"}]`))
		},
		"Merge": func() ([]byte, error) { return Merge(doc, []byte(`{"metadata":{"labels":{"app":"x"}}}`)) },
		"Strategic": func() ([]byte, error) {
			return Strategic(doc, []byte(`{"metadata":{"labels":{"app":"x"}}}`), &corev1.Pod{})
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := apply(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNewCustomTypes(b *testing.B) {
	base := NewTypes(nil)
	small := define(b, base, []byte(gadgets))
	wide := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{}}}
	for i := range 1000 {
		wide.Properties[fmt.Sprint("field", i)] = *spec.MapProperty(spec.StringProperty())
	}
	for name, s := range map[string]*spec.Schema{"small": small.schemas["v1"].ToKubeOpenAPI(), "1000 fields": &wide} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := NewCustomTypes(base, map[schema.GroupVersionKind]*spec.Schema{small.kind("v1"): s}, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCustom(b *testing.B) {
	d := define(b, NewTypes(nil), []byte(gadgets))
	fields := d.fields("v1", "")
	live := gadget(b, "v1", `{"size":1,"mode":"x","ports":[{"port":1},{"port":2}],"labels":{"a":"1","b":"2"}}`)
	obj := live.DeepCopy()
	fields.Update(nil, live, "a")
	live.SetUID("u")
	changed := live.DeepCopy()
	unstructured.SetNestedField(changed.Object, int64(2), "spec", "size")
	b.Run("create", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := fields.Update(nil, obj.DeepCopy(), "a"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("update", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := fields.Update(live, changed.DeepCopy(), "b"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("apply", func(b *testing.B) {
		doc := []byte(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"},"spec":{"any":1}}`)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := fields.Apply(live, doc, "c", false); err != nil {
				b.Fatal(err)
			}
		}
	})
}
