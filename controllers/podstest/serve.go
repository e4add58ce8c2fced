package podstest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// AddNode makes a node that is ready, in a zone.
func AddNode(t testing.TB, env *evenkeeltest.Env, name, zone string) *corev1.Node {
	t.Helper()
	node, err := client.Of[*corev1.Node](env.Conn()).Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}},
	})
	if err != nil {
		t.Fatalf("add node %s: %v", name, err)
	}
	return node
}

// AddPod makes a pod with the label app, of its namespace "default", that runs on a
// node at an address and is ready. It has a port "http", 8080. There must be no
// [Play] beside it.
func AddPod(t testing.TB, env *evenkeeltest.Env, name, app, node, ip string) *corev1.Pod {
	t.Helper()
	pods := client.Of[*corev1.Pod](env.Conn()).In("default")
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Image: "web:1", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		}}},
	})
	if err != nil {
		t.Fatalf("add pod %s: %v", name, err)
	}
	pod = pod.DeepCopy()
	pod.Status.Phase, pod.Status.PodIPs = corev1.PodRunning, []corev1.PodIP{{IP: ip}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	if pod, err = pods.UpdateStatus(t.Context(), pod); err != nil {
		t.Fatalf("start pod %s: %v", name, err)
	}
	return pod
}

// SetReady has a pod of [AddPod] be ready, or not.
func SetReady(t testing.TB, env *evenkeeltest.Env, name string, ready bool) {
	t.Helper()
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	_, err := client.Of[*corev1.Pod](env.Conn()).Status().Patch(t.Context(), client.Key{Namespace: "default", Name: name}, client.MergePatch(map[string]any{
		"status": map[string]any{"conditions": []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()}}},
	}))
	if err != nil {
		t.Fatalf("set pod %s ready: %v", name, err)
	}
}
