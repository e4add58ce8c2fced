package services

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/even-keel/evenkeel/client"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// turnedAt is a pod that became ready, or ceased to be, some minutes after noon.
func turnedAt(name string, minutes int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, LastTransitionTime: metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))},
	}}}
}

func TestWhatBeganTheChange(t *testing.T) {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1", CreationTimestamp: metav1.NewTime(noon)}}
	again := web.DeepCopy()
	again.UID, again.CreationTimestamp = "2", metav1.NewTime(noon.Add(time.Hour))
	key, triggers := client.Key{Name: "web"}, NewTriggers()
	for _, step := range []struct {
		why     string
		service *corev1.Service
		pods    []*corev1.Pod
		minutes int // -1 is that nothing is known
	}{
		{"the service is new", web, []*corev1.Pod{turnedAt("a", -5)}, 0},
		{"nothing happened", web, []*corev1.Pod{turnedAt("a", -5)}, -1},
		{"the first of two", web, []*corev1.Pod{turnedAt("a", 9), turnedAt("b", 7)}, 7},
		{"one goes, which tells no time", web, []*corev1.Pod{turnedAt("a", 9)}, -1},
		{"one that is new has no condition", web, []*corev1.Pod{turnedAt("a", 9), {}}, -1},
		{"another service of the name", again, []*corev1.Pod{turnedAt("a", 9)}, 60},
	} {
		now := triggers.Now(step.service, step.pods)
		triggers.Keep(key, now)
		want, has := now.Annotate(map[string]string{corev1.EndpointsLastChangeTriggerTime: "old"})[corev1.EndpointsLastChangeTriggerTime]
		if step.minutes < 0 {
			if has {
				t.Errorf("%s: at %s", step.why, want)
			}
			continue
		}
		if at := noon.Add(time.Duration(step.minutes) * time.Minute).Format(time.RFC3339Nano); want != at {
			t.Errorf("%s: at %q, want %s", step.why, want, at)
		}
	}
	triggers.Forget(key)
	if now := triggers.Now(again, nil); !now.At.Equal(noon.Add(time.Hour)) {
		t.Errorf("one that was forgotten is not new: at %v", now.At)
	}
}

func TestPortsOfPods(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	named := func(name string, n int32, p corev1.Protocol) []corev1.ContainerPort {
		return []corev1.ContainerPort{{Name: name, ContainerPort: n, Protocol: p}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{
			{Ports: named("setup", 1, corev1.ProtocolTCP)},
			{Ports: named("side", 2, corev1.ProtocolTCP), RestartPolicy: &always},
		},
		Containers: []corev1.Container{{Ports: named("dns", 53, corev1.ProtocolUDP)}, {Ports: named("dns", 5353, corev1.ProtocolTCP)}},
	}}
	for target, want := range map[string]int32{"dns": 5353, "side": 2, "setup": 0, "none": 0} {
		got, ok := Port(pod, &corev1.ServicePort{Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString(target)})
		if got != want || ok != (want != 0) {
			t.Errorf("%s is %d, %v; want %d", target, got, ok, want)
		}
	}
	if got, ok := Port(pod, &corev1.ServicePort{TargetPort: intstr.FromInt32(8080)}); got != 8080 || !ok {
		t.Errorf("a number is %d, %v", got, ok)
	}
}

func TestFamiliesAndAddresses(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00:0::1"}}}}
	for family, want := range map[corev1.IPFamily]string{corev1.IPv4Protocol: "10.0.0.1", corev1.IPv6Protocol: "fd00::1"} {
		if got := Addresses(pod, family); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %v, want %s", family, got, want)
		}
	}
	for name, c := range map[string]struct {
		spec corev1.ServiceSpec
		want corev1.IPFamily
	}{
		"as it says":        {corev1.ServiceSpec{IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}, ClusterIP: "None"}, corev1.IPv6Protocol},
		"by its address":    {corev1.ServiceSpec{ClusterIP: "fd00::9"}, corev1.IPv6Protocol},
		"headless, unsaid":  {corev1.ServiceSpec{ClusterIP: "None"}, corev1.IPv4Protocol},
		"by an old address": {corev1.ServiceSpec{ClusterIP: "10.0.0.9"}, corev1.IPv4Protocol},
	} {
		if got := Families(&corev1.Service{Spec: c.spec}); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

func TestChangesThatConcernEndpoints(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"a label":      {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }, true},
		"its deletion": {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }, true},
		"its end":      {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"an address":   {func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.2"}} }, true},
		"readiness":    {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }, true},
		"a note":       {func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
		"a time":       {func(p *corev1.Pod) { p.Status.Conditions[0].LastProbeTime = metav1.NewTime(noon) }, false},
	} {
		now := turnedAt("a", 0)
		c.change(now)
		if got := Concerns(turnedAt("a", 0), now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
