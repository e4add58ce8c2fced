package custom_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/custom"
	valueschema "github.com/even-keel/evenkeel/server/schema"
)

// twoVersions have a default each; v1 is stored.
const twoVersions = `{"metadata":{"name":"figs.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
	"names":{"plural":"figs","singular":"fig","kind":"Fig","listKind":"FigList"},"conversion":{"strategy":%q},"versions":[
	{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"one":{"type":"string","default":"1"}}}}}}},
	{"name":"v1beta1","served":true,"storage":false,"deprecated":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"two":{"type":"string","default":"2"}}}}}},
	"subresources":{"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},
	"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".spec.a"},{"name":"N","type":"integer","jsonPath":".spec.a"}]}]},
	"status":{"acceptedNames":{"plural":"figs","singular":"fig","kind":"Fig","listKind":"FigList"}}}`

func versions(t testing.TB, strategy apiextensionsv1.ConversionStrategyType, hooks custom.Webhooks) map[string]*custom.Version {
	t.Helper()
	d, err := custom.Read(func() []byte { return fmt.Appendf(nil, twoVersions, strategy) }, &valueschema.Pool{}, hooks)
	if err != nil {
		t.Fatal(err)
	}
	return d.Versions()
}

func fig(version string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/" + version, "kind": "Fig", "metadata": map[string]any{"name": "x", "generation": int64(1)}, "spec": spec,
	}}
}

// TestFromStored: what was stored gets the defaults of the version that it was
// stored in, and loses what the version that is asked for does not have.
func TestFromStored(t *testing.T) {
	all := versions(t, apiextensionsv1.NoneConverter, nil)
	for version, want := range map[string]string{"v1": `{"a":"x","one":"1"}`, "v1beta1": `{"a":"x"}`} {
		out, err := all[version].FromStored(t.Context(), []*unstructured.Unstructured{fig("v1", map[string]any{"a": "x", "gone": "y"})})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(out[0].Object["spec"]); err != nil || string(got) != want || out[0].GetAPIVersion() != "example.com/"+version {
			t.Errorf("in %s: %s %s, want %s", version, out[0].GetAPIVersion(), got, want)
		}
	}
	if _, err := all["v1"].FromStored(t.Context(), []*unstructured.Unstructured{fig("v0", nil)}); err == nil {
		t.Error("a version that there is not was read")
	}
}

type hook func(objs []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error)

func (h hook) Convert(_ context.Context, objs []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
	return h(objs, to)
}

// TestWebhooksAreAskedOnce: for all objects that are of another version, and for
// none that is not.
func TestWebhooksAreAskedOnce(t *testing.T) {
	var asked []int
	broken := errors.New("broken")
	var fails error
	h := hook(func(objs []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
		asked = append(asked, len(objs))
		var out []*unstructured.Unstructured
		for _, u := range objs {
			u = u.DeepCopy()
			u.SetAPIVersion(to.String())
			out = append(out, u)
		}
		return out, fails
	})
	all := versions(t, apiextensionsv1.WebhookConverter, func(*apiextensionsv1.CustomResourceDefinition) (custom.Converter, error) { return h, nil })
	to := schema.GroupVersion{Group: "example.com", Version: "v1beta1"}
	mixed := []*unstructured.Unstructured{fig("v1", nil), fig("v1beta1", nil), fig("v1", nil)}
	out, err := all["v1"].Convert(t.Context(), mixed, to)
	if err != nil || len(out) != 3 || out[1] != mixed[1] || out[2].GetAPIVersion() != to.String() || mixed[2].GetAPIVersion() == to.String() {
		t.Errorf("converted %v: %v", out, err)
	}
	if _, err := all["v1"].Convert(t.Context(), mixed[1:2], to); err != nil {
		t.Error(err)
	}
	if len(asked) != 1 || asked[0] != 2 {
		t.Errorf("asked for %v", asked)
	}
	fails = broken
	if _, err := all["v1"].Convert(t.Context(), mixed, to); !errors.Is(err, broken) {
		t.Errorf("a webhook that fails: %v", err)
	}
	if _, err := versions(t, apiextensionsv1.WebhookConverter, nil)["v1"].Convert(t.Context(), mixed, to); err == nil {
		t.Error("converted without webhooks")
	}
}

func TestDeprecation(t *testing.T) {
	all := versions(t, apiextensionsv1.NoneConverter, nil)
	if got := all["v1beta1"].Kind.Deprecated; got != "example.com/v1beta1 Fig is deprecated; use example.com/v1 Fig" {
		t.Error(got)
	}
	if got := all["v1"].Kind.Deprecated; got != "" {
		t.Error(got)
	}
}

// TestWrongKindAndReplicas are told by the field.
func TestWrongKindAndReplicas(t *testing.T) {
	k := versions(t, apiextensionsv1.NoneConverter, nil)["v1beta1"].Kind
	u := fig("v1beta1", map[string]any{"n": int64(-1)})
	if errs := k.ValidateCreate(u); len(errs) != 1 || errs[0].Error() != ".spec.n: Invalid value: -1: should be a non-negative integer" {
		t.Errorf("replicas: %v", errs)
	}
	if err := k.Scale.Check(fig("v1beta1", map[string]any{})); err == nil {
		t.Error("no replicas can be scaled")
	}
	k.Scale.Set(u, 3)
	if n, there, _ := k.Scale.Get(u); n != 3 || there != 0 {
		t.Errorf("scaled to %d, %d", n, there)
	}
	u.SetKind("Other")
	if errs := k.ValidateCreate(u); len(errs) != 1 || errs[0].Error() != `kind: Invalid value: "Other": must be Fig` {
		t.Errorf("kind: %v", errs)
	}
}

func ExampleDefinition_Versions() {
	d, err := custom.Read(func() []byte { return fmt.Appendf(nil, twoVersions, "None") }, &valueschema.Pool{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	beta := d.Versions()["v1beta1"]
	u := fig("v1beta1", map[string]any{"a": "x", "b": "y"})
	unknown, err := beta.Coerce(u)
	fmt.Println(beta.Kind.GVK, "stored as", beta.Stored, unknown, err)
	beta.Kind.Default(u)
	fmt.Println(u.Object["spec"])
	fmt.Println(beta.Kind.Columns[1].Name, beta.Kind.Cells(u, now))
	// Output:
	// example.com/v1beta1, Kind=Fig stored as example.com/v1 [spec.b] <nil>
	// map[a:x two:2]
	// A [x x <nil>]
}
