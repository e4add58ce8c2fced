package controlplane_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/evenkeeltest/controlplane"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`

func TestDeploymentsBecomeAvailable(t *testing.T) {
	env := evenkeeltest.Start(t)
	controlplane.Run(env, controlplane.Options{Nodes: 2})
	env.Apply(web)
	evenkeeltest.Eventually(env, client.Key{Namespace: "default", Name: "web"},
		evenkeeltest.Condition[*appsv1.Deployment]("Available", "True"))
	evenkeeltest.EventuallyAll(env, func(pods []*corev1.Pod) error {
		for _, p := range pods {
			if p.Status.Phase != corev1.PodRunning || p.Spec.NodeName == "" {
				return fmt.Errorf("pod %s on %q is %s", p.Name, p.Spec.NodeName, p.Status.Phase)
			}
		}
		return nil
	})
}

func TestSomeControllersCanBeLeftOut(t *testing.T) {
	env := evenkeeltest.Start(t)
	controlplane.Run(env, controlplane.Options{Controllers: []string{"*", "-deployment"}})
	env.Apply(web)
	evenkeeltest.Eventually(env, client.Key{Name: "node-1"}, func(n *corev1.Node) error {
		if len(n.Spec.Taints) > 0 {
			return fmt.Errorf("the node has taints: %v", n.Spec.Taints)
		}
		return nil
	})
	for set, err := range client.Of[*appsv1.ReplicaSet](env.Conn()).List(t.Context()) {
		t.Errorf("there is the replica set %v, %v", set, err)
	}
}
