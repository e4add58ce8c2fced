package daemonset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

func TestNoFaultChangesTheEnd(t *testing.T) {
	set := &appsv1.DaemonSet{}
	if err := yaml.Unmarshal([]byte(agent), set); err != nil {
		t.Fatal(err)
	}
	set.Namespace = "default"
	nodes := func(names ...string) (objs []*corev1.Node) {
		for _, name := range names {
			objs = append(objs, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return objs
	}
	taints := func(node, all string) explore.Step {
		return explore.Patch[*corev1.Node](client.Key{Name: node}, client.MergePatch(`{"spec":{"taints":`+all+`}}`))
	}
	explore.Run(t, explore.Scenario{
		Server: func(t *testing.T) *rest.Config {
			env := evenkeeltest.Start(t, evenkeeltest.Bubble())
			podstest.Play(t, env)
			return env.Config()
		},
		Controller: run,
		Steps: []explore.Step{
			explore.Create(nodes("n1", "n2")...), explore.Create(set), taints("n1", "[]"), taints("n2", "[]"),
			explore.Patch[*appsv1.DaemonSet](key("agent"), client.StrategicPatch(two)), taints("n2", `[{"key":"maintenance","effect":"NoExecute"}]`),
		},
		Max: 40,
	})
}
