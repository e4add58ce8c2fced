package schema_test

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/even-keel/evenkeel/server/schema"
)

// allowed reports whether a definition may have a schema.
func allowed(props *apiextensionsv1.JSONSchemaProps) bool {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
			}},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	in := &apiextensions.CustomResourceDefinition{}
	if apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, in, nil) != nil {
		return false
	}
	return len(validation.ValidateCustomResourceDefinition(context.Background(), in)) == 0
}

func read(t *testing.T, text string) *schema.Schema {
	t.Helper()
	var props *apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal([]byte(text), &props); err != nil {
		t.Fatal(err)
	}
	s, err := schema.New(props)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return u
}

func nothing() field.ErrorList { return nil }

// TestSeedsAreAllowed keeps the fuzz target's seeds from being passed over.
func TestSeedsAreAllowed(t *testing.T) {
	for _, s := range seeds {
		var props *apiextensionsv1.JSONSchemaProps
		if err := json.Unmarshal([]byte(s[0]), &props); err != nil || !allowed(props) {
			t.Errorf("no definition may have %s", s[0])
		}
	}
}

func TestCoerceAndDefault(t *testing.T) {
	s := read(t, `{"type":"object","properties":{"spec":{"type":"object","properties":{
		"a":{"type":"string","default":"x"},"n":{"type":"string","nullable":true},"l":{"type":"array","items":{"type":"object","properties":{"k":{"type":"integer","default":1}}}},
		"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"tight":{"type":"object"}}}}}}}`)
	u := parse(t, `{"apiVersion":"e/v1","kind":"T","metadata":{"name":"x","strange":1},"top":1,
		"spec":{"a":null,"n":null,"z":1,"l":[{"y":1}],"free":{"q":{"r":null},"tight":{"u":1}}}}`)
	unknown, err := s.Coerce(u)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(unknown)
	if got := strings.Join(unknown, " "); got != "metadata.strange spec.free.tight.u spec.l[0].y spec.z top" {
		t.Errorf("unknown: %s", got)
	}
	s.Default(u.Object)
	got, err := json.Marshal(u.Object["spec"])
	if want := `{"a":"x","free":{"q":{"r":null},"tight":{}},"l":[{"k":1}],"n":null}`; err != nil || string(got) != want {
		t.Errorf("%s %v, want %s", got, err, want)
	}
}

// TestMalformedMetadata is refused from clients, and dropped from the store.
func TestMalformedMetadata(t *testing.T) {
	s := read(t, `{"type":"object"}`)
	const text = `{"apiVersion":"e/v1","kind":"T","metadata":{"name":"x","labels":{"a":1}}}`
	if _, err := s.Coerce(parse(t, text)); err == nil {
		t.Error("a label that is a number was accepted")
	}
	u := parse(t, text)
	if err := s.Repair(u); err != nil || u.GetLabels() != nil || u.GetGeneration() != 1 {
		t.Errorf("repaired: %v %v", u.Object, err)
	}
}

// TestOrderOfErrors: values come first, by field, then what the caller finds, then
// lists.
func TestOrderOfErrors(t *testing.T) {
	s := read(t, `{"type":"object","properties":{"spec":{"type":"object","oneOf":[{"required":["y"]},{"required":["z"]}],
		"properties":{"c":{"type":"integer"},"a":{"type":"integer"},"b":{"type":"integer"},"y":{"type":"integer"},"z":{"type":"integer"},
		"s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}}}`)
	u := parse(t, `{"apiVersion":"e/v1","kind":"T","metadata":{"name":"x"},"spec":{"c":"","a":"","b":"","s":["q","q"]}}`)
	extra := func() field.ErrorList { return field.ErrorList{field.Required(field.NewPath(".extra"), "")} }
	var fields []string
	for _, e := range s.Validate(t.Context(), u.Object, extra) {
		fields = append(fields, e.Field)
	}
	if got := strings.Join(fields, " "); got != "spec.a spec.b spec.c spec.y <nil> .extra spec.s[1]" {
		t.Errorf("errors about %s", got)
	}
}

// TestUntouchedMayStayWrong: a rule that has come later binds what is changed,
// and is told of where nothing is.
func TestUntouchedMayStayWrong(t *testing.T) {
	s := read(t, `{"type":"object","properties":{"spec":{"type":"object","properties":{
		"a":{"type":"string","maxLength":3,"x-kubernetes-validations":[{"rule":"self != 'bad'","message":"a is bad"}]},"b":{"type":"string"}}}}}`)
	old := parse(t, `{"apiVersion":"e/v1","kind":"T","metadata":{"name":"x"},"spec":{"a":"bad"}}`)
	if warnings := s.Warnings(t.Context(), old.Object, old.Object); len(warnings) > 0 {
		t.Errorf("warned before any rule was broken: %v", warnings)
	}
	other := parse(t, `{"apiVersion":"e/v1","kind":"T","metadata":{"name":"x"},"spec":{"a":"bad","b":"new"}}`)
	if errs := s.ValidateUpdate(t.Context(), other.Object, old.Object, nothing); len(errs) > 0 {
		t.Errorf("untouched: %v", errs)
	}
	if warnings := s.Warnings(t.Context(), other.Object, old.Object); len(warnings) != 1 || warnings[0] != `spec.a: Invalid value: "bad": a is bad` {
		t.Errorf("warnings: %q", warnings)
	}
	old.Object["spec"] = map[string]any{"a": "ok"}
	if errs := s.ValidateUpdate(t.Context(), other.Object, old.Object, nothing); len(errs) != 1 {
		t.Errorf("touched: %v", errs)
	}
	if errs := s.Validate(t.Context(), other.Object, nothing); len(errs) != 1 {
		t.Errorf("new: %v", errs)
	}
}

// TestPool: equal schemas are one, for as long as somebody holds it.
func TestPool(t *testing.T) {
	var p schema.Pool
	get := func(text string) *schema.Schema {
		s, err := p.Get([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b, c := get(`{"type":"object"}`), get(`{"type":"object"}`), get(`{"type":"object","description":"other"}`)
	if a != b || a == c {
		t.Error("equal schemas are two, or different ones are one")
	}
	if none := get(""); none.OpenAPI() != nil || none.HasDefaults() {
		t.Error("no schema is one")
	}
	if _, err := p.Get([]byte("{")); err == nil {
		t.Error("half a schema was read")
	}
	if n := p.Len(); n != 3 {
		t.Errorf("%d schemas are known, not 3", n)
	}
	runtime.KeepAlive(a)
	a, b, c = nil, nil, nil
	for p.Len() > 0 {
		runtime.GC()
		runtime.Gosched()
	}
}
