package patch

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

var definitionScheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
})

// definitionTypes are the types that ours are made of.
var definitionTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfiguration.NewTypeConverter(definitionScheme())
})

func definitionFields(subresource string, reset ...string) *Fields {
	return NewFields(NewTypes(nil), definitionScheme(), Endpoint{
		Kind: definitionKind, Subresource: subresource, Reset: reset, Now: func() time.Time { return aTime },
	})
}

func aDefinition(t testing.TB, doc []byte) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(doc, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func TestCatalogHasTheTypesOfDefinitions(t *testing.T) {
	value, err := definitionTypes().ObjectToTyped(withKind(&apiextensionsv1.CustomResourceDefinition{}, definitionKind))
	if err != nil {
		t.Fatal(err)
	}
	c := &catalog{types: map[string]*node{}}
	for _, want := range value.Schema().Types {
		if strings.Contains(want.Name, ".apiextensions.v1.") {
			got := c.nodeLocked(want.Name).TypeDef
			if diff := cmp.Diff(asMap(t, comparable(want)), asMap(t, comparable(got))); diff != "" {
				t.Errorf("%s: -library +ours\n%s", want.Name, diff)
			}
		}
	}
}

// A definition as it was created, and after its controller has accepted it.
func TestDefinitionsAreTrackedAsRecorded(t *testing.T) {
	done := 0
	for _, step := range readLines[recordedStep](t, "testdata/custom.jsonl") {
		if step.Response.Body["kind"] != definitionKind.Kind {
			continue
		}
		done++
		text, err := json.Marshal(step.Response.Body)
		if err != nil {
			t.Fatal(err)
		}
		answer := aDefinition(t, text)
		obj, status := answer.DeepCopy(), answer.Status
		obj.ManagedFields, obj.UID = nil, ""
		obj.Status = apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}}
		if _, err := definitionFields("", "status").Update(nil, obj, "wire"); err != nil {
			t.Fatal(err)
		}
		if len(status.Conditions) > 0 {
			live := obj.DeepCopy()
			live.UID = "u"
			obj = live.DeepCopy()
			obj.Status = status
			if _, err := definitionFields("status", "spec", "metadata").Update(live, obj, "kube-apiserver"); err != nil {
				t.Fatal(err)
			}
		}
		want, got := asMap(t, answer)["metadata"], asMap(t, obj)["metadata"]
		for _, m := range []any{want, got} {
			normalize(m.(map[string]any)["managedFields"])
			delete(m.(map[string]any), "uid")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %d: -recorded +ours\n%s", step.Scenario, step.Step, diff)
		}
	}
	if done != 3 {
		t.Errorf("%d steps", done)
	}
}

// Schemas have JSON forms of their own; counting their fields by shape must give
// what the library gives, or leave it to the library.
func TestDefinitionsByShapeAndByLibrary(t *testing.T) {
	n := seed(t)
	fields := definitionFields("", "status")
	library := NewFields(fields.types, fields.scheme, fields.endpoint)
	library.once.Do(func() {
		v := versions{library}
		var err error
		library.library, err = managedfields.NewDefaultFieldManager(definitionTypes(), v, v, v,
			definitionKind, definitionKind.GroupVersion(), "", library.resetFilters())
		if err != nil {
			t.Fatal(err)
		}
	})
	var live *apiextensionsv1.CustomResourceDefinition
	accepted := 0
	for i := range 300 {
		f := &filler{Rand: rand.New(rand.NewPCG(n, uint64(i))), full: 0.7, odd: i%3 == 0}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		for _, part := range []any{&crd.ObjectMeta, &crd.Spec.Names, &crd.Spec.Scope, &crd.Spec.Conversion, &crd.Status} {
			f.fill(reflect.ValueOf(part).Elem(), 0)
		}
		crd.ManagedFields = nil
		for range f.IntN(3) {
			crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
				Name: f.text(), Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: randomSchema(f, 0)},
			})
		}
		crd.SetGroupVersionKind(definitionKind)
		compareDefinitions(t, fields, library, nil, crd)
		if live != nil {
			compareDefinitions(t, fields, library, live, crd)
		}
		if i%2 == 0 {
			live = crd.DeepCopy()
			if _, err := fields.Update(nil, live, "m"); err != nil {
				live = nil
				continue
			}
			live.UID = "u"
			accepted++
		}
	}
	if accepted < 50 {
		t.Errorf("only %d definitions were accepted", accepted)
	}
}

func compareDefinitions(t *testing.T, fields, library *Fields, live, obj *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	var was runtime.Object
	if live != nil {
		was = live
	}
	ours, theirs := obj.DeepCopy(), obj.DeepCopy()
	_, err := fields.Update(was, ours, "m")
	_, wantErr := viaLibrary(library, was, theirs, "m")
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("error %v, want %v", err, wantErr)
	}
	if diff := cmp.Diff(owned(theirs), owned(ours)); diff != "" {
		t.Fatalf("-library +ours\n%s", diff)
	}
}

// randomSchema has the parts that have JSON forms of their own.
func randomSchema(f *filler, depth int) *apiextensionsv1.JSONSchemaProps {
	s := &apiextensionsv1.JSONSchemaProps{Type: "object"}
	for range f.IntN(4) {
		switch f.IntN(6) {
		case 0:
			s.Default = &apiextensionsv1.JSON{Raw: []byte([]string{`null`, `1`, `{"a":[1]}`, `"x"`}[f.IntN(4)])}
		case 1:
			s.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`2`)}}
		case 2:
			s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: f.IntN(2) == 0}
		case 3:
			s.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.a"}, {Rule: "self.b", Message: "m"}}
		}
		if depth > 2 {
			continue
		}
		switch f.IntN(4) {
		case 0:
			s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: randomSchema(f, depth+1)}
		case 1:
			s.Properties = map[string]apiextensionsv1.JSONSchemaProps{"a": *randomSchema(f, depth+1), "b": *randomSchema(f, depth+1)}
		case 2:
			s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: randomSchema(f, depth+1)}
		case 3:
			s.AllOf = []apiextensionsv1.JSONSchemaProps{*randomSchema(f, depth+1)}
		}
	}
	return s
}
