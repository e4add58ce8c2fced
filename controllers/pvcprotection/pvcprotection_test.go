package pvcprotection

import (
	"context"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

func run(ctx context.Context, cfg *rest.Config) error {
	base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := base.Add(New(base, nil)); err != nil {
		return err
	}
	return base.Run(ctx)
}

func key(name string) client.Key { return client.Key{Namespace: "default", Name: name} }

const claims = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: used, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: free, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: user, namespace: default}
spec:
  nodeName: n1
  containers: [{name: c, image: c}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: used}}]
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: default}
spec:
  containers: [{name: c, image: c}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: free}}]
`

// A claim that a pod on a node uses outlives its deletion, across restarts of the
// server, until the pod is gone; one that no such pod uses does not.
func TestClaimsWaitForTheirPods(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Apply(claims)
	env.Run(run)
	all, pods := client.Of[*corev1.PersistentVolumeClaim](env.Conn()), client.Of[*corev1.Pod](env.Conn())
	for _, name := range []string{"used", "free"} {
		if err := all.Delete(t.Context(), key(name)); err != nil {
			t.Fatal(err)
		}
	}
	evenkeeltest.EventuallyGone[*corev1.PersistentVolumeClaim](env, key("free"))
	env.Cut()
	env.Restart(nil)
	if claim, err := all.Get(t.Context(), key("used")); err != nil || claim.DeletionTimestamp == nil {
		t.Fatalf("the claim that is used: %v, %v", claim, err)
	}
	if err := pods.Delete(t.Context(), key("user"), client.Grace(0)); err != nil {
		t.Fatal(err)
	}
	evenkeeltest.EventuallyGone[*corev1.PersistentVolumeClaim](env, key("used"))
}

func TestUses(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Name, claim.Namespace = "p-v", "default"
	named := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "p-v"}}
	other := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "q"}}
	for name, c := range map[string]struct {
		node, namespace string
		source          corev1.VolumeSource
		want            bool
	}{
		"names it":              {"n", "default", named, true},
		"is on no node":         {"", "default", named, false},
		"in another namespace":  {"n", "other", named, false},
		"names another":         {"n", "default", other, false},
		"has it made":           {"n", "default", corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}, true},
		"has none":              {"n", "default", corev1.VolumeSource{}, false},
		"has it made elsewhere": {"n", "other", corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}, false},
	} {
		p := &corev1.Pod{}
		p.Name, p.Namespace, p.Spec.NodeName = "p", c.namespace, c.node
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: c.source}}
		if got := uses(p, claim); got != c.want {
			t.Errorf("a pod that %s: %v", name, got)
		}
	}
}
