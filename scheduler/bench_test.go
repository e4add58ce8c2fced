package scheduler

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	benchNodes = 1000
	benchPods  = 10_000
)

func benchCluster() *Snapshot {
	s := cluster()
	for i := range benchNodes {
		s.SetNode(newNode(fmt.Sprintf("node-%04d", i), inZone(fmt.Sprintf("zone-%d", i%10)), nodeLabel("disk", []string{"ssd", "hdd"}[i%2])))
	}
	return s
}

// Each pod is decided upon and placed before the next, 10,000 of them on 1,000 nodes.
func BenchmarkSchedule(b *testing.B) {
	app := func(i int) string { return fmt.Sprintf("app-%d", i/20) } // 20 replicas each
	for _, kind := range []struct {
		name string
		pod  func(i int) []podOption
	}{
		{"plain", func(int) []podOption { return nil }},
		{"node-affinity", func(int) []podOption {
			return []podOption{needsNode(nodeTerm("disk", corev1.NodeSelectorOpIn, "ssd", "nvme"))}
		}},
		{"spread", func(i int) []podOption {
			return []podOption{spreadOver(zoneKey, 1, "app", app(i)), spreadOver(hostKey, 1, "app", app(i), anyway)}
		}},
		{"anti-affinity", func(i int) []podOption { return []podOption{apart(podTerm(hostKey, "app", app(i)))} }},
		{"affinity", func(i int) []podOption {
			return []podOption{near(podTerm(zoneKey, "app", app(i))), likesApart(100, podTerm(hostKey, "app", app(i)))}
		}},
		{"one-app", func(int) []podOption {
			return []podOption{label("app", "one"), spreadOver(zoneKey, 1, "app", "one"), likesApart(100, podTerm(hostKey, "app", "one"))}
		}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			pods := make([]*corev1.Pod, benchPods)
			for i := range pods {
				opts := append([]podOption{asks("cpu", "100m", "memory", "256Mi"), label("app", app(i))}, kind.pod(i)...)
				pods[i] = newPod(fmt.Sprintf("pod-%05d", i), opts...)
			}
			b.ReportAllocs()
			for b.Loop() {
				scheduleAll(b, pods)
			}
			b.ReportMetric(float64(benchPods*b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}

func scheduleAll(b *testing.B, pods []*corev1.Pod) {
	b.StopTimer()
	s := benchCluster()
	b.StartTimer()
	for _, pod := range pods {
		d := Schedule(s, pod)
		if d.Node == "" {
			b.Fatalf("%s: %s", pod.Name, d.Message())
		}
		s.Place(pod, d.Node)
	}
}

// What it costs to find that there is no place, and who would have to go.
func BenchmarkScheduleFull(b *testing.B) {
	s := benchCluster()
	for i := range benchPods {
		s.Place(newPod(fmt.Sprintf("pod-%05d", i), asks("cpu", "400m", "memory", "1Gi"), started(time.Unix(int64(i), 0))), fmt.Sprintf("node-%04d", i%benchNodes))
	}
	for name, pod := range map[string]*corev1.Pod{
		"refused": newPod("new", asks("cpu", "1")),
		"preempt": newPod("new", asks("cpu", "1"), priority(100)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := Schedule(s, pod); d.Node != "" || (d.Nominated != "") != (name == "preempt") {
					b.Fatalf("%+v", d)
				}
			}
		})
	}
}
