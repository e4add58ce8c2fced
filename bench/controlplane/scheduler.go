//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
	"github.com/even-keel/evenkeel/bench/machine"
	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/scheduler"
)

// enough is how many pods a second a scheduler is to place.
var enough = figure.Target{AtLeast: 1000}

// kinds are what pods may ask of where they are.
var kinds = []struct {
	name string
	ask  func(app string, of *corev1.PodSpec)
}{
	{"that ask for resources", func(string, *corev1.PodSpec) {}},
	{"that spread over zones and nodes", func(app string, of *corev1.PodSpec) {
		of.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selects(app)},
			{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selects(app)},
		}
	}},
	{"that share no node", func(app string, of *corev1.PodSpec) {
		of.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: selects(app)}},
		}}
	}},
	{"that share a zone", func(app string, of *corev1.PodSpec) {
		of.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelTopologyZone, LabelSelector: selects(app)}},
		}}
	}},
}

func selects(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// place is a node, in one of ten zones.
func place(i int) *corev1.Node {
	name := fmt.Sprintf("node-%04d", i)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%10)}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

// loose is a pod that nobody controls, one of twenty of its app.
func loose(i int, ask func(string, *corev1.PodSpec)) *corev1.Pod {
	name, app := fmt.Sprintf("pod-%05d", i), fmt.Sprintf("app-%d", i/20)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName,
			Containers:    []corev1.Container{{Name: "app", Image: oldImage, Resources: corev1.ResourceRequirements{Requests: requests()}}},
		},
	}
	ask(app, &p.Spec)
	return p
}

// schedulerAlone measures decisions: nothing is sent, and each pod is placed before
// the next is decided upon.
func (b *bench) schedulerAlone(context.Context, string) error {
	for _, kind := range kinds {
		s := scheduler.NewSnapshot(1)
		s.SetNamespace("default", nil)
		for i := range b.sizes.places {
			s.SetNode(place(i))
		}
		pods := make([]*corev1.Pod, b.sizes.pods)
		for i := range pods {
			pods[i] = loose(i, kind.ask)
			pods[i].UID = types.UID(pods[i].Name)
		}
		rate, err := placeAll(s, pods)
		if err != nil {
			return fmt.Errorf("pods %s: %w", kind.name, err)
		}
		b.keep(&b.figures, "scheduler, decisions: pods "+kind.name, figure.PerSecond, enough, figure.Sample{Value: rate})
	}
	return nil
}

func placeAll(s *scheduler.Snapshot, pods []*corev1.Pod) (rate float64, err error) {
	runtime.GC()
	begun := time.Now()
	for _, pod := range pods {
		d := scheduler.Schedule(s, pod)
		if d.Node == "" {
			return 0, fmt.Errorf("%s has no node: %s", pod.Name, d.Message())
		}
		s.Place(pod, d.Node)
	}
	return float64(len(pods)) / time.Since(begun).Seconds(), nil
}

// schedulerServed measures the scheduler of a server on which nodes and pods are
// already: from the start of the process until the last pod is bound.
func (b *bench) schedulerServed(ctx context.Context, dir string) error {
	if err := b.fill(ctx, dir); err != nil {
		return err
	}
	s, err := b.open(ctx, dir, "--controllers", "scheduler", "--nodes", "0")
	if err != nil {
		return err
	}
	defer s.Kill()
	if err := s.play(ctx, step{"scheduler alone, until all are bound", b.sizes.pods, s.allBound, s.checkBound}); err != nil {
		return err
	}
	took := s.steps[len(s.steps)-1].Ours
	last := took[len(took)-1]
	name := "scheduler, end to end: pods bound"
	b.keep(&b.figures, name, figure.PerSecond, enough, figure.Sample{Value: last.Work / last.Value, Others: last.Others})
	return s.Stop()
}

// fill makes nodes, and pods that wait for one.
func (b *bench) fill(ctx context.Context, dir string) error {
	s, err := b.open(ctx, dir, machine.APIAlone...)
	if err != nil {
		return err
	}
	defer s.Kill()
	err = each(b.sizes.places, func(i int) error {
		_, err := s.nodes.Create(ctx, place(i))
		return err
	})
	if err != nil {
		return err
	}
	// The server keeps pods off nodes of which nobody has said that they are ready.
	tolerant := func(_ string, of *corev1.PodSpec) {
		of.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}}
	}
	err = each(b.sizes.pods, func(i int) error {
		_, err := s.pods.Create(ctx, loose(i, tolerant))
		return err
	})
	return errors.Join(err, s.Stop())
}

// allBound waits until no pod is without a node. Only the metadata of those without
// is watched.
func (s *stage) allBound(ctx context.Context) error {
	waiting := map[string]bool{}
	pods := client.Of[*metav1.PartialObjectMetadata](s.conn, client.Kind(corev1.SchemeGroupVersion.WithKind("Pod")))
	return follow(ctx, pods, func(p *metav1.PartialObjectMetadata, deleted bool) {
		if deleted {
			delete(waiting, p.Name)
		} else {
			waiting[p.Name] = true
		}
	}, func() bool { return len(waiting) == 0 }, client.Fields("spec.nodeName="))
}

func (s *stage) checkBound(ctx context.Context) error {
	pods, _, err := s.pods.All(ctx)
	if err != nil {
		return err
	}
	if len(pods) != s.sizes.pods {
		return fmt.Errorf("there are %d pods", len(pods))
	}
	byNode := map[string]int{}
	for _, p := range pods {
		if p.Spec.NodeName == "" {
			return fmt.Errorf("pod %s has no node", p.Name)
		}
		if byNode[p.Spec.NodeName]++; byNode[p.Spec.NodeName] > podsOnNode {
			return fmt.Errorf("node %s has more than %d pods", p.Spec.NodeName, podsOnNode)
		}
	}
	return nil
}
