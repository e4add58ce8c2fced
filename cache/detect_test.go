package cache_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/even-keel/evenkeel/cache"
)

func watchedPod() *corev1.Pod {
	pod := newPod("web-1", "web", "n1")
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "a:1", Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{"cpu": resource.MustParse("1")},
	}}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Overhead = corev1.ResourceList{"cpu": *resource.NewQuantity(5, resource.DecimalSI)}
	return pod
}

func TestTheDetectorNamesWhatChanged(t *testing.T) {
	for want, change := range map[string]func(*corev1.Pod){
		`spec.containers[0].image: "a:1" -> "a:2"`:        func(p *corev1.Pod) { p.Spec.Containers[0].Image = "a:2" },
		`metadata.labels.app: "web" -> "db"`:              func(p *corev1.Pod) { p.Labels["app"] = "db" },
		`metadata.labels.new: none -> "x"`:                func(p *corev1.Pod) { p.Labels["new"] = "x" },
		`metadata.labels.app: "web" -> none`:              func(p *corev1.Pod) { delete(p.Labels, "app") },
		`metadata.deletionGracePeriodSeconds: <nil> -> 0`: func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = new(int64) },
		`spec.volumes[0].emptyDir.medium: "" -> "Memory"`: func(p *corev1.Pod) { p.Spec.Volumes[0].EmptyDir.Medium = "Memory" },
		`spec.containers[0].resources.limits.cpu`:         func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2") },
		`spec.containers[1]: none -> {Name:side`:          func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side"}) },
		`metadata.creationTimestamp`:                      func(p *corev1.Pod) { p.CreationTimestamp = metav1.Now() },
	} {
		t.Run(want, func(t *testing.T) {
			store := cache.New(cache.Options[*corev1.Pod]{DetectMutations: true})
			store.Set(watchedPod(), newPod("other", "web", "n1"))
			if err := store.Verify(); err != nil {
				t.Fatalf("before: %v", err)
			}
			for pod := range store.List(cache.Field("metadata.name", "web-1")) {
				change(pod)
			}
			err := store.Verify()
			var m *cache.Mutation
			if !errors.Is(err, cache.ErrMutated) || !errors.As(err, &m) {
				t.Fatalf("not found: %v", err)
			}
			if len(m.Fields) != 1 || !strings.HasPrefix(m.Fields[0], strings.Split(want, "<nil> -> 0")[0]) {
				t.Errorf("fields %q, want %q", m.Fields, want)
			}
			if m.Key.Name != "web-1" || len(m.HandedOut) != 1 || !strings.Contains(m.HandedOut[0], "detect_test.go:") {
				t.Errorf("the culprit is not named: %v", m)
			}
		})
	}
}

func TestTheDetectorFindsObjectsThatHaveLeft(t *testing.T) {
	store := cache.New(cache.Options[*corev1.Pod]{DetectMutations: true})
	store.Set(watchedPod())
	pod, _ := store.Get("default", "web-1")
	pod.Spec.NodeName = "n9"
	store.Set(watchedPod())
	if err := store.Verify(); !errors.Is(err, cache.ErrMutated) {
		t.Errorf("the replaced object was changed, but: %v", err)
	}
	if err := store.Verify(); err != nil {
		t.Errorf("told twice: %v", err)
	}
}

func TestTheDetectorRemembersTheLastPlaces(t *testing.T) {
	store := cache.New(cache.Options[*corev1.Pod]{DetectMutations: true})
	store.Set(watchedPod())
	for range 100 {
		store.Get("default", "web-1")
	}
	pod, _ := store.Get("default", "web-1")
	pod.Spec.NodeName = "n9"
	var m *cache.Mutation
	if !errors.As(store.Verify(), &m) || len(m.HandedOut) != 2 {
		t.Errorf("it was handed out at two places, but: %v", m)
	}
}

func TestReadingIsNoMutation(t *testing.T) {
	store := cache.New(cache.Options[*corev1.Pod]{DetectMutations: true})
	for i := range 10 {
		pod := watchedPod()
		pod.Name = strconv.Itoa(i)
		store.Set(pod)
	}
	for pod := range store.List() {
		_ = pod.Spec.Overhead.Cpu().String()
		_ = pod.String()
		pod.DeepCopy().Labels["x"] = "y"
	}
	if err := store.Verify(); err != nil {
		t.Error(err)
	}
}

func TestTheDetectorReadsUnstructuredObjects(t *testing.T) {
	store := cache.New(cache.Options[*unstructured.Unstructured]{DetectMutations: true})
	store.Set(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "one"}, "spec": map[string]any{"ports": []any{int64(80)}},
	}})
	one, _ := store.Get("", "one")
	one.Object["spec"].(map[string]any)["ports"].([]any)[0] = int64(81)
	var m *cache.Mutation
	if !errors.As(store.Verify(), &m) || m.Fields[0] != "spec.ports[0]: 80 -> 81" {
		t.Errorf("found %v", m)
	}
}
