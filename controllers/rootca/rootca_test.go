package rootca

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	if err := base.Add(New(base, nil, Options{CA: []byte("the CA")})); err != nil {
		return err
	}
	return base.Run(ctx)
}

// TestDecide checks decisions about random states: what is written is right, keeps
// what others noted, and has nothing to be written any more.
func TestDecide(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 1_000 {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		if r.IntN(4) == 0 {
			ns.DeletionTimestamp = new(metav1.Now())
		}
		if r.IntN(4) == 0 {
			ns.Status.Phase = corev1.NamespaceTerminating
		}
		goes := ns.DeletionTimestamp != nil || ns.Status.Phase == corev1.NamespaceTerminating
		var has *unstructured.Unstructured
		data := map[string]any{}
		if r.IntN(3) > 0 {
			if r.IntN(3) > 0 {
				data["ca.crt"] = []string{"new", "old"}[r.IntN(2)]
			}
			if r.IntN(3) == 0 {
				data["more"] = "x"
			}
			has = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
				"name": mapName, "namespace": "web", "resourceVersion": "7", "annotations": map[string]any{"mine": "x"},
			}, "data": data}}
		}
		right := has != nil && len(data) == 1 && data["ca.crt"] == "new"
		got := decide(ns, has, "new")
		if (got == nil) != (goes || right) {
			t.Fatalf("of %v in %v came %v", has, ns, got)
		}
		if got == nil {
			continue
		}
		if fmt.Sprint(got.Object["data"]) != "map[ca.crt:new]" || client.KeyOf(got) != (client.Key{Namespace: "web", Name: mapName}) || decide(ns, got, "new") != nil {
			t.Fatalf("of %v came %v", has, got)
		}
		if has != nil && (got.GetAnnotations()["mine"] != "x" || got.GetResourceVersion() != "7") {
			t.Fatalf("of %v came %v", has, got)
		}
	}
}

func right(m *corev1.ConfigMap) error {
	if len(m.Data) != 1 || m.Data["ca.crt"] != "the CA" || m.Annotations[noteKey] == "" {
		return fmt.Errorf("it is %v with %v", m.Data, m.Annotations)
	}
	return nil
}

func TestEveryNamespaceHasTheCertificates(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Run(run)
	env.Apply(`{apiVersion: v1, kind: Namespace, metadata: {name: web}}`)
	key := client.Key{Namespace: "web", Name: "kube-root-ca.crt"}
	first := evenkeeltest.Eventually(env, key, right)
	maps := client.Of[*corev1.ConfigMap](env.Conn())
	if _, err := maps.Patch(t.Context(), key, client.MergePatch(`{"data":{"ca.crt":"forged","more":"x"}}`)); err != nil {
		t.Fatal(err)
	}
	env.Cut()
	evenkeeltest.Eventually(env, key, right)
	env.Restart(nil)
	if err := maps.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	evenkeeltest.Eventually(env, key, func(m *corev1.ConfigMap) error {
		if m.UID == first.UID {
			return fmt.Errorf("it is the first one still")
		}
		return right(m)
	})
	// Those of the first namespaces are the server's, until the CA is another.
	evenkeeltest.Eventually(env, client.Key{Namespace: "default", Name: "kube-root-ca.crt"}, right)
}
