//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/bench/machine"
	"github.com/even-keel/evenkeel/client"
)

// What the pods of the cluster run, before and after they are rolled.
const (
	oldImage = "registry.example.com/shop/app:v1.0.0"
	newImage = "registry.example.com/shop/app:v1.1.0"
)

// teams is how many namespaces the Deployments are in.
const teams = 10

// stepWithin is how long a step may take.
const stepWithin = 10 * time.Minute

// cluster measures the life of many Deployments on many nodes. After each step it is
// looked whether the cluster is as it should be.
func (b *bench) cluster(ctx context.Context, dir string) error {
	s, err := b.open(ctx, dir, "--nodes", strconv.Itoa(b.sizes.nodes))
	if err != nil {
		return err
	}
	defer s.Kill()
	for _, step := range s.life() {
		if err := s.play(ctx, step); err != nil {
			return err
		}
	}
	return s.Stop()
}

// step is one of a cluster's life.
type step struct {
	name string
	pods int // that it is about
	do   func(context.Context) error
	// check is an error if the cluster is not as it should be after that.
	check func(context.Context) error
}

func (s *stage) life() []step {
	z := s.sizes
	apart := map[string]bool{}
	return []step{
		{"nodes register and are ready", z.nodes, s.nodesReady, s.checkNodes},
		{"scale up, until all are available", z.all(), s.scaleUp, func(ctx context.Context) error { return s.checkPods(ctx, oldImage, nil) }},
		{"roll all to a new version", z.all(), s.roll, func(ctx context.Context) error { return s.checkPods(ctx, newImage, nil) }},
		{
			"drain " + thousands(z.drained) + " nodes", z.all() * z.drained / z.nodes,
			func(ctx context.Context) error { return s.drain(ctx, apart) }, func(ctx context.Context) error { return s.checkPods(ctx, newImage, apart) },
		},
		{"delete all, until nothing is left", z.all(), s.deleteAll, s.checkNothing},
	}
}

func (s *stage) play(ctx context.Context, st step) error {
	ctx, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	if err := s.step(ctx, st.name, st.pods, st.do); err != nil {
		return err
	}
	if err := st.check(ctx); err != nil {
		return fmt.Errorf("after %q: %w", st.name, err)
	}
	return nil
}

// nodesReady waits until all nodes may be given pods.
func (s *stage) nodesReady(ctx context.Context) error {
	ready := map[string]bool{}
	return follow(ctx, s.nodes, func(n *corev1.Node, _ bool) { ready[n.Name] = usable(n) },
		func() bool { return count(ready) == s.sizes.nodes })
}

func usable(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && len(n.Spec.Taints) == 0
		}
	}
	return false
}

func count[K comparable](of map[K]bool) (n int) {
	for _, yes := range of {
		if yes {
			n++
		}
	}
	return n
}

func team(i int) string { return fmt.Sprintf("team-%d", i%teams) }

func (s *stage) deployment(i int) *appsv1.Deployment {
	name, replicas := fmt.Sprintf("app-%d", i), int32(s.sizes.replicas)
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: team(i), Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "app", Image: oldImage,
					Env:       []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}},
					Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
					Resources: corev1.ResourceRequirements{Requests: requests()},
				}}},
			},
		},
	}
}

func requests() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
}

func (s *stage) scaleUp(ctx context.Context) error {
	err := each(min(teams, s.sizes.deployments), func(i int) error {
		_, err := s.namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team(i)}})
		return err
	})
	if err != nil {
		return err
	}
	err = each(s.sizes.deployments, func(i int) error {
		_, err := s.deployments.Create(ctx, s.deployment(i))
		return err
	})
	return errors.Join(err, s.rolledOut(ctx))
}

// roll changes the template of all Deployments, which replace a quarter of their pods
// at a time, as is the default.
func (s *stage) roll(ctx context.Context) error {
	err := each(s.sizes.deployments, func(i int) error {
		_, err := s.deployments.Patch(ctx, client.KeyOf(s.deployment(i)), client.StrategicPatch(map[string]any{"spec": map[string]any{"template": map[string]any{
			"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": newImage}}},
		}}}))
		return err
	})
	return errors.Join(err, s.rolledOut(ctx))
}

// rolledOut waits as `kubectl rollout status` does, for all Deployments.
func (s *stage) rolledOut(ctx context.Context) error {
	done := map[client.Key]bool{}
	return follow(ctx, s.deployments, func(d *appsv1.Deployment, _ bool) {
		want, is := *d.Spec.Replicas, d.Status
		done[client.KeyOf(d)] = is.ObservedGeneration >= d.Generation && is.UpdatedReplicas == want && is.Replicas == want && is.AvailableReplicas == want
	}, func() bool { return count(done) == s.sizes.deployments })
}

// drain does what `kubectl drain` does, to many nodes at once, and waits until all
// pods are ready elsewhere. It tells which nodes these are.
func (s *stage) drain(ctx context.Context, drained map[string]bool) error {
	for i := range s.sizes.drained {
		drained[fmt.Sprintf("node-%d", i+1)] = true
	}
	for name := range drained {
		if _, err := s.nodes.Patch(ctx, client.Key{Name: name}, client.MergePatch(map[string]any{"spec": map[string]any{"unschedulable": true}})); err != nil {
			return err
		}
	}
	pods, _, err := s.pods.All(ctx)
	if err != nil {
		return err
	}
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !drained[p.Spec.NodeName] })
	evict := client.Sub[*policyv1.Eviction](s.pods, "eviction")
	err = each(len(pods), func(i int) error {
		key := client.KeyOf(pods[i])
		_, err := evict.Create(ctx, key, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
		return client.IgnoreNotFound(err) // one that was about to end
	})
	return errors.Join(err, s.elsewhere(ctx, drained))
}

// elsewhere waits until all pods are ready, and none is on some nodes.
func (s *stage) elsewhere(ctx context.Context, drained map[string]bool) error {
	there, ready := map[client.Key]bool{}, map[client.Key]bool{}
	return follow(ctx, s.pods, func(p *corev1.Pod, deleted bool) {
		key := client.KeyOf(p)
		if deleted {
			delete(there, key)
			delete(ready, key)
			return
		}
		there[key], ready[key] = drained[p.Spec.NodeName], isReady(p)
	}, func() bool { return len(ready) == s.sizes.all() && count(ready) == len(ready) && count(there) == 0 })
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

// deleteAll deletes the Deployments, and waits until the garbage collector has
// deleted what was theirs, and the nodes have let the last pod go.
func (s *stage) deleteAll(ctx context.Context) error {
	err := each(min(teams, s.sizes.deployments), func(i int) error { return s.deployments.In(team(i)).DeleteCollection(ctx) })
	for err == nil {
		var left int
		if left, err = s.left(ctx); left == 0 {
			return err
		}
		err = errors.Join(err, machine.Sleep(ctx, 50*time.Millisecond))
	}
	return err
}
