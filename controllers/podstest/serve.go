package podstest

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// Step does something to a server; it is an explore.Step.
type Step = func(ctx context.Context, conn *client.Conn) error

// AddNode makes a node that is ready, in a zone.
func AddNode(t testing.TB, env *evenkeeltest.Env, name, zone string) *corev1.Node {
	t.Helper()
	return do(t, env, func(ctx context.Context, conn *client.Conn) (*corev1.Node, error) {
		return makeNode(ctx, conn, name, zone)
	})
}

// MakeNode is [AddNode] as a step.
func MakeNode(name, zone string) Step {
	return func(ctx context.Context, conn *client.Conn) error {
		_, err := makeNode(ctx, conn, name, zone)
		return err
	}
}

func makeNode(ctx context.Context, conn *client.Conn, name, zone string) (*corev1.Node, error) {
	node, err := client.Of[*corev1.Node](conn).Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	return node, nil
}

// AddPod makes a pod with the label app, of its namespace "default", that runs on a
// node at an address and is ready. It has a port "http", 8080. There must be no
// [Play] beside it.
func AddPod(t testing.TB, env *evenkeeltest.Env, name, app, node, ip string) *corev1.Pod {
	t.Helper()
	return do(t, env, func(ctx context.Context, conn *client.Conn) (*corev1.Pod, error) {
		return makePod(ctx, conn, name, app, node, ip)
	})
}

// MakePod is [AddPod] as a step.
func MakePod(name, app, node, ip string) Step {
	return func(ctx context.Context, conn *client.Conn) error {
		_, err := makePod(ctx, conn, name, app, node, ip)
		return err
	}
}

func makePod(ctx context.Context, conn *client.Conn, name, app, node, ip string) (*corev1.Pod, error) {
	pods := client.Of[*corev1.Pod](conn).In("default")
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Image: "web:1", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("add pod %s: %w", name, err)
	}
	pod = pod.DeepCopy()
	pod.Status.Phase, pod.Status.PodIPs = corev1.PodRunning, []corev1.PodIP{{IP: ip}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	if pod, err = pods.UpdateStatus(ctx, pod); err != nil {
		return nil, fmt.Errorf("start pod %s: %w", name, err)
	}
	return pod, nil
}

// SetReady has a pod of [AddPod] be ready, or not.
func SetReady(t testing.TB, env *evenkeeltest.Env, name string, ready bool) {
	t.Helper()
	do(t, env, func(ctx context.Context, conn *client.Conn) (any, error) {
		return nil, MakeReady(name, ready)(ctx, conn)
	})
}

// MakeReady is [SetReady] as a step.
func MakeReady(name string, ready bool) Step {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return func(ctx context.Context, conn *client.Conn) error {
		_, err := client.Of[*corev1.Pod](conn).Status().Patch(ctx, client.Key{Namespace: "default", Name: name}, client.MergePatch(map[string]any{
			"status": map[string]any{"conditions": []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()}}},
		}))
		if err != nil {
			return fmt.Errorf("set pod %s ready: %w", name, err)
		}
		return nil
	}
}

func do[T any](t testing.TB, env *evenkeeltest.Env, f func(context.Context, *client.Conn) (T, error)) T {
	t.Helper()
	v, err := f(t.Context(), env.Conn())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Service is a service of the pods with the label app=web.
func Service() *corev1.Service {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	web.Spec.ClusterIP, web.Spec.Selector = "10.0.0.10", map[string]string{"app": "web"}
	web.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}}
	return web
}

// WithoutTrigger leaves out when it began what changes endpoints, which is in memory; it
// is a Keep of explore.
func WithoutTrigger(o *unstructured.Unstructured) bool {
	all := o.GetAnnotations()
	delete(all, corev1.EndpointsLastChangeTriggerTime)
	o.SetAnnotations(all)
	return true
}
