package client_test

import (
	"io"
	"net/http"
	"net/url"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/even-keel/evenkeel/client"
)

func TestPatches(t *testing.T) {
	conn, ns := connect(t)
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	key := client.KeyOf(must[*corev1.ConfigMap](t)(maps.Create(t.Context(), configMap("a", map[string]string{"k": "0"}))))
	for name, patch := range map[string]client.Patch{
		"merge, a string":   client.MergePatch(`{"data":{"k":"merge, a string"}}`),
		"merge, bytes":      client.MergePatch([]byte(`{"data":{"k":"merge, bytes"}}`)),
		"strategic, a map":  client.StrategicPatch(map[string]any{"data": map[string]string{"k": "strategic, a map"}}),
		"json, a value":     client.JSONPatch([]map[string]string{{"op": "replace", "path": "/data/k", "value": "json, a value"}}),
		"apply, generated":  client.ApplyPatch(applycorev1.ConfigMap("a", ns).WithData(map[string]string{"k": "apply, generated"})),
		"apply, a document": client.ApplyPatch("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: apply, a document\n"),
	} {
		t.Run(name, func(t *testing.T) {
			var opts []client.WriteOption
			if name[:5] == "apply" {
				opts = []client.WriteOption{client.Force()}
			}
			got, err := maps.Patch(t.Context(), key, patch, opts...)
			if err != nil || got.Data["k"] != name {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestApplyIsByManager(t *testing.T) {
	ctx := t.Context()
	conn, ns := connect(t, client.Manager("one"))
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	made := must[*corev1.ConfigMap](t)(maps.Apply(ctx, configMap("a", map[string]string{"x": "1", "y": "1"})))
	if len(made.ManagedFields) != 1 || made.ManagedFields[0].Manager != "one" || made.ManagedFields[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Fatalf("managed by %v", made.ManagedFields)
	}
	mine := configMap("a", map[string]string{"x": "2"})
	if _, err := maps.Apply(ctx, mine, client.FieldManager("two")); !client.IsConflict(err) {
		t.Errorf("of another's field: %v", err)
	}
	got := must[*corev1.ConfigMap](t)(maps.Apply(ctx, mine, client.FieldManager("two"), client.Force()))
	if got.Data["x"] != "2" || got.Data["y"] != "1" {
		t.Errorf("taken over: %v", got.Data)
	}
	got = must[*corev1.ConfigMap](t)(maps.Apply(ctx, configMap("a", nil)))
	if _, has := got.Data["y"]; has || got.Data["x"] != "2" {
		t.Errorf("no longer wanted: %v", got.Data)
	}
	if _, err := client.Of[*unstructured.Unstructured](conn, client.Kind(configMaps)).In(ns).Apply(ctx, &unstructured.Unstructured{
		Object: map[string]any{"metadata": map[string]any{"name": "u"}, "data": map[string]any{"k": "v"}},
	}); err != nil {
		t.Error(err)
	}
	if _, err := client.Of[*appsv1.Deployment](conn).In(ns).Apply(ctx, deployment("web")); err != nil {
		t.Error(err)
	}
}

func TestStrictWritesRefuseUnknownFields(t *testing.T) {
	conn, ns := connect(t)
	maps := client.Of[*unstructured.Unstructured](conn, client.Kind(configMaps)).In(ns)
	odd := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "dato": map[string]any{}}}
	if _, err := maps.Create(t.Context(), odd, client.Strict()); err == nil {
		t.Error("an unknown field was taken")
	}
}

func TestSubresources(t *testing.T) {
	ctx := t.Context()
	conn, ns := connect(t)
	deployments, pods := client.Of[*appsv1.Deployment](conn).In(ns), client.Of[*corev1.Pod](conn).In(ns)

	web := client.KeyOf(must[*appsv1.Deployment](t)(deployments.Create(ctx, deployment("web"))))
	scales := client.Sub[*autoscalingv1.Scale](deployments, "scale")
	scale := must[*autoscalingv1.Scale](t)(scales.Get(ctx, web))
	scale.Spec.Replicas = 5
	if got := must[*autoscalingv1.Scale](t)(scales.Update(ctx, web, scale)); got.Spec.Replicas != 5 {
		t.Errorf("scaled to %+v", got)
	}
	scale = must[*autoscalingv1.Scale](t)(scales.Patch(ctx, web, client.MergePatch(`{"spec":{"replicas":6}}`)))
	if scale.Spec.Replicas != 6 || scale.Kind != "Scale" {
		t.Errorf("scaled to %+v", scale)
	}
	dynamic := must[*unstructured.Unstructured](t)(client.Sub[*unstructured.Unstructured](deployments, "scale").Get(ctx, web))
	if dynamic.GetKind() != "Scale" {
		t.Errorf("unstructured: %v", dynamic)
	}

	a := client.KeyOf(must[*corev1.Pod](t)(pods.Create(ctx, pod("a"))))
	bind := client.Sub[*corev1.Binding](pods, "binding")
	if _, err := bind.Create(ctx, a, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}); err != nil {
		t.Error(err)
	}
	if p := must[*corev1.Pod](t)(pods.Get(ctx, a)); p.Spec.NodeName != "n1" {
		t.Errorf("bound to %q", p.Spec.NodeName)
	}
	evict := client.Sub[*policyv1.Eviction](pods, "eviction")
	if _, err := evict.Create(ctx, a, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil {
		t.Error(err)
	}
	accounts := client.Of[*corev1.ServiceAccount](conn).In(ns)
	robot := client.KeyOf(must[*corev1.ServiceAccount](t)(accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}})))
	tokens := client.Sub[*authenticationv1.TokenRequest](accounts, "token")
	token, err := tokens.Create(ctx, robot, &authenticationv1.TokenRequest{})
	if err != nil || token.Status.Token == "" {
		t.Errorf("a token: %+v, %v", token, err)
	}
}

func TestLogsAreStreams(t *testing.T) {
	conn, ns := connectAs(t, theServer.InFront(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.WriteString(w, r.URL.Path+"?"+r.URL.RawQuery)
	}))
	log, err := client.Of[*corev1.Pod](conn).In(ns).Stream(t.Context(), client.Key{Name: "a"}, "log", url.Values{"tailLines": {"5"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	got, err := io.ReadAll(log)
	if want := "/api/v1/namespaces/" + ns + "/pods/a/log?tailLines=5"; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
