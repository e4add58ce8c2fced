package statefulset

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

func TestNoFaultChangesTheEnd(t *testing.T) {
	set := &appsv1.StatefulSet{}
	manifest := with("replicas: 3,", `replicas: 2, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}],`)
	if err := yaml.Unmarshal([]byte(manifest), set); err != nil {
		t.Fatal(err)
	}
	set.Namespace = "default"
	patch := func(spec string) explore.Step {
		return explore.Patch[*appsv1.StatefulSet](key("web"), client.StrategicPatch(`{"spec":`+spec+`}`))
	}
	explore.Run(t, explore.Scenario{
		Server: func(t *testing.T) *rest.Config {
			env := evenkeeltest.Start(t, evenkeeltest.Bubble())
			podstest.Play(t, env)
			return env.Config()
		},
		Controller: run,
		Steps: []explore.Step{
			explore.Create(set), patch(`{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}`), patch(`{"replicas":1}`),
		},
		Always: firstRunsFirst,
		Max:    40,
	})
}

// firstRunsFirst is the promise of an order: there is no second pod before the first one.
func firstRunsFirst(ctx context.Context, conn *client.Conn) error {
	set, err := client.Of[*appsv1.StatefulSet](conn).Get(ctx, key("web"))
	if err != nil || set.Status.ReadyReplicas > 0 {
		return client.IgnoreNotFound(err)
	}
	pods := client.Of[*corev1.Pod](conn)
	_, err = pods.Get(ctx, key("web-1"))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, err = pods.Get(ctx, key("web-0")); client.IsNotFound(err) {
		return errors.New("web-1 is there before web-0")
	}
	return err
}
