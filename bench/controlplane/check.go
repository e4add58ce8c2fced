//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
)

func (s *stage) checkNodes(ctx context.Context) error {
	nodes, _, err := s.nodes.All(ctx)
	if err == nil && len(nodes) != s.sizes.nodes {
		err = fmt.Errorf("there are %d nodes", len(nodes))
	}
	return err
}

// podsOnNode is for how many a simulated node has room.
const podsOnNode = 110

// checkPods looks whether every Deployment has all its pods, and no others, ready and
// of an image, and whether no node has too many, or any if it should have none.
func (s *stage) checkPods(ctx context.Context, image string, drained map[string]bool) error {
	if err := s.nobodyEnds(ctx); err != nil {
		return err
	}
	pods, _, err := s.pods.All(ctx)
	if err != nil {
		return err
	}
	byApp, byNode, ips := map[string]int{}, map[string]int{}, map[string]string{}
	for _, p := range pods {
		key := client.KeyOf(p)
		if p.Spec.Containers[0].Image != image || !isReady(p) || drained[p.Spec.NodeName] || p.Status.PodIP == "" {
			return fmt.Errorf("pod %s has image %s, is on %q at %q, and is ready: %t", key, p.Spec.Containers[0].Image, p.Spec.NodeName, p.Status.PodIP, isReady(p))
		}
		if other := ips[p.Status.PodIP]; other != "" {
			return fmt.Errorf("pods %s and %s have the same address", key, other)
		}
		ips[p.Status.PodIP] = key.String()
		byApp[p.Labels["app"]]++
		if byNode[p.Spec.NodeName]++; byNode[p.Spec.NodeName] > podsOnNode {
			return fmt.Errorf("node %s has more than %d pods", p.Spec.NodeName, podsOnNode)
		}
	}
	for i := range s.sizes.deployments {
		if name := s.deployment(i).Name; byApp[name] != s.sizes.replicas {
			return fmt.Errorf("%s has %d pods", name, byApp[name])
		}
	}
	return s.checkSets(ctx, image)
}

// nobodyEnds waits until no pod is about to end, which a Deployment does not wait for:
// the next step should not have to.
func (s *stage) nobodyEnds(ctx context.Context) error {
	ending := map[client.Key]bool{}
	return follow(ctx, s.pods, func(p *corev1.Pod, deleted bool) {
		if deleted || p.DeletionTimestamp == nil {
			delete(ending, client.KeyOf(p))
		} else {
			ending[client.KeyOf(p)] = true
		}
	}, func() bool { return len(ending) == 0 })
}

// checkWithin is how long controllers may take to tell what they have reached.
const checkWithin = time.Minute

// checkSets waits until the ReplicaSets of the newest template tell of all pods, and
// the others of none.
func (s *stage) checkSets(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	wrong := map[client.Key]string{}
	err := follow(ctx, s.sets, func(set *appsv1.ReplicaSet, deleted bool) {
		want := int32(0)
		if set.Spec.Template.Spec.Containers[0].Image == image {
			want = int32(s.sizes.replicas)
		}
		delete(wrong, client.KeyOf(set))
		if is := set.Status; !deleted && (*set.Spec.Replicas != want || is.Replicas != want || is.ReadyReplicas != want) {
			wrong[client.KeyOf(set)] = fmt.Sprintf("wants %d pods and has %d, %d ready, where %d are right", *set.Spec.Replicas, is.Replicas, is.ReadyReplicas, want)
		}
	}, func() bool { return len(wrong) == 0 })
	for key, what := range wrong {
		return fmt.Errorf("ReplicaSet %s %s: %w", key, what, err)
	}
	return err
}

// left is how much there is of Deployments and of what is theirs; the count stops at
// the first kind that has any.
func (s *stage) left(ctx context.Context) (int, error) {
	for _, some := range []func() (int, error){
		func() (int, error) { return first[*appsv1.Deployment](ctx, s.deployments) },
		func() (int, error) { return first[*appsv1.ReplicaSet](ctx, s.sets) },
		func() (int, error) { return first[*corev1.Pod](ctx, s.pods) },
	} {
		if n, err := some(); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, nil
}

// first is 1 if there is any object, and does not read more than that.
func first[T client.Object](ctx context.Context, of *client.Client[T]) (int, error) {
	for _, err := range of.List(ctx, client.Chunk(1)) {
		if err != nil {
			return 0, err
		}
		return 1, nil
	}
	return 0, nil
}

func (s *stage) checkNothing(ctx context.Context) error {
	left, err := s.left(ctx)
	if err == nil && left > 0 {
		err = errors.New("something is left")
	}
	return err
}
