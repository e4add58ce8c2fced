package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// definition is a definition as a server holds it.
type definition struct {
	*apiextensionsv1.CustomResourceDefinition
	types   *Types
	schemas map[string]*structural.Structural
}

func define(t testing.TB, base *Types, doc []byte) *definition {
	t.Helper()
	d := &definition{schemas: map[string]*structural.Structural{}}
	if err := yaml.Unmarshal(doc, &d.CustomResourceDefinition); err != nil {
		t.Fatal(err)
	}
	kinds := map[schema.GroupVersionKind]*spec.Schema{}
	for _, v := range d.Spec.Versions {
		kinds[d.kind(v.Name)] = nil
		if v.Schema == nil {
			continue
		}
		d.schemas[v.Name] = structuralOf(t, v.Schema.OpenAPIV3Schema)
		kinds[d.kind(v.Name)] = d.schemas[v.Name].ToKubeOpenAPI()
	}
	var err error
	if d.types, err = NewCustomTypes(base, kinds, false); err != nil {
		t.Fatal(err)
	}
	return d
}

func structuralOf(t testing.TB, s *apiextensionsv1.JSONSchemaProps) *structural.Structural {
	t.Helper()
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s, &internal, nil); err != nil {
		t.Fatal(err)
	}
	made, err := structural.NewStructural(&internal)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (d *definition) kind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Spec.Group, Version: version, Kind: d.Spec.Names.Kind}
}

// fields is an endpoint of one version; conversion sets the version and no more.
func (d *definition) fields(version, subresource string) *Fields {
	e := Endpoint{
		Kind: d.kind(version), Subresource: subresource, Custom: true,
		Now: func() time.Time { return aTime },
		Default: func(obj runtime.Object) {
			defaulting.Default(obj.(*unstructured.Unstructured).Object, d.schemas[version])
		},
		Convert: func(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
			if _, ok := d.schemas[to.Version]; !ok {
				return nil, runtime.NewNotRegisteredErrForKind("test", to.WithKind(d.Spec.Names.Kind))
			}
			return withKind(obj, d.kind(to.Version)), nil
		},
	}
	for _, v := range d.Spec.Versions {
		if v.Name == version && v.Subresources != nil && v.Subresources.Status != nil {
			e.Reset = []string{"status"}
			if subresource == "status" {
				e.Reset = []string{"metadata", "spec"}
			}
		}
	}
	return NewFields(d.types, nil, e)
}

// The steps of the recorded scenarios that write custom resources.
func TestCustomResourcesAreTrackedAsRecorded(t *testing.T) {
	base := NewTypes(nil)
	definitions := map[string]*definition{} // by group
	objects := map[string]*unstructured.Unstructured{}
	done := 0
	for _, step := range readLines[recordedStep](t, "testdata/custom.jsonl") {
		body := strings.NewReplacer("${id}", "id", "${ns}", step.Scenario+"-id").Replace(string(step.Request.Body))
		if strings.HasSuffix(step.Request.Path, "/customresourcedefinitions") {
			d := define(t, base, []byte(body))
			definitions[d.Spec.Group] = d
			continue
		}
		where, err := url.Parse(strings.ReplaceAll(step.Request.Path, "${id}", "id"))
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(where.Path, "/") // "", apis, group, version, namespaces, ns, plural, name, subresource
		if len(parts) < 7 || definitions[parts[2]] == nil {
			continue
		}
		done++
		t.Run(fmt.Sprintf("%s %d", step.Scenario, step.Step), func(t *testing.T) {
			replayCustom(t, definitions[parts[2]], objects, step, parts, where.Query().Get("fieldManager"), body)
		})
	}
	if done < 13 {
		t.Errorf("only %d steps replayed", done)
	}
}

func replayCustom(t *testing.T, d *definition, objects map[string]*unstructured.Unstructured, step recordedStep, parts []string, manager, body string) {
	subresource := ""
	if len(parts) > 8 {
		subresource = parts[8]
	}
	var sent unstructured.Unstructured
	if err := json.Unmarshal([]byte(body), &sent.Object); err != nil {
		t.Fatal(err)
	}
	key := parts[2] + "/" + sent.GetName()
	if len(parts) > 7 {
		key = parts[2] + "/" + parts[7]
	}
	live := objects[key]
	var before *unstructured.Unstructured
	if live != nil {
		setDeleted(live, step.Response.Body)
		before = live.DeepCopy()
	}
	fields := d.fields(parts[3], subresource)
	var got runtime.Object
	var err error
	if strings.Contains(step.Request.Headers["Content-Type"], "apply") {
		got, err = fields.Apply(asObjectOrNil(live), []byte(body), manager, false)
	} else {
		got, err = fields.Update(asObjectOrNil(live), written(t, live, step), "wire")
	}
	if err != nil {
		checkStatus(t, err, step.Response.Body)
		return
	}
	if diff := cmp.Diff(before, live); diff != "" {
		t.Errorf("live was changed: %s", diff)
	}
	obj := got.(*unstructured.Unstructured)
	obj.SetUID("u")
	objects[key] = obj
	checkRecorded(t, obj, step)
}

// setDeleted sets what a delete has set since the last recorded write.
func setDeleted(live *unstructured.Unstructured, recorded map[string]any) {
	for _, name := range []string{"deletionTimestamp", "deletionGracePeriodSeconds"} {
		if v, ok, _ := unstructured.NestedFieldNoCopy(recorded, "metadata", name); ok {
			if n, isNumber := v.(float64); isNumber {
				v = int64(n)
			}
			live.Object["metadata"].(map[string]any)[name] = v
		}
	}
}

// asObjectOrNil: a nil pointer is no nil object.
func asObjectOrNil(u *unstructured.Unstructured) runtime.Object {
	if u == nil {
		return nil
	}
	return u
}

// written is the object as the server had it after a write, but for managed
// fields: a recorded answer may be a part of it.
func written(t *testing.T, live *unstructured.Unstructured, step recordedStep) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	if step.Request.Select == nil {
		obj.Object = step.Response.Body
		obj = decodeCustom(t, obj)
		obj.SetManagedFields(nil)
		return obj
	}
	obj = live.DeepCopy()
	obj.Object["spec"] = step.Response.Body["spec"]
	return decodeCustom(t, obj)
}

// decodeCustom gives numbers the types that a server's decoder gives them.
func decodeCustom(t testing.TB, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return out
}

func checkRecorded(t *testing.T, obj *unstructured.Unstructured, step recordedStep) {
	t.Helper()
	got := asMap(t, obj.Object)
	want := step.Response.Body
	if step.Request.Select == nil {
		got = selected(got, []string{"spec", "metadata.managedFields"})
		want = selected(want, []string{"spec", "metadata.managedFields"})
	} else {
		got = selected(got, step.Request.Select)
	}
	for _, m := range []map[string]any{got, want} {
		normalize(m["metadata.managedFields"])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-recorded +ours\n%s", diff)
	}
}

const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              mode: {type: string, default: fast}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [port, protocol]
                items:
                  type: object
                  required: [port]
                  properties:
                    port: {type: integer}
                    protocol: {type: string, default: TCP}
                    name: {type: string}
              atom:
                type: object
                x-kubernetes-map-type: atomic
                properties: {a: {type: string}, b: {type: string}}
              list: {type: array, items: {type: string}}
              labels: {type: object, additionalProperties: {type: string}}
              template:
                type: object
                x-kubernetes-embedded-resource: true
                x-kubernetes-preserve-unknown-fields: true
              templates:
                type: array
                items:
                  type: object
                  x-kubernetes-embedded-resource: true
                  properties: {spec: {type: object, properties: {x: {type: string}}}}
              maybe: {type: object, nullable: true, properties: {x: {type: string}}}
              free: {x-kubernetes-preserve-unknown-fields: true}
              any: {x-kubernetes-int-or-string: true}
          status: {type: object, properties: {ready: {type: boolean}}}
  - name: v2
    served: true
    storage: false
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-map-type: atomic, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, properties: {ready: {type: boolean}}}
  - name: v3
    served: true
    storage: false
`

func gadget(t testing.TB, version, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	err := u.UnmarshalJSON([]byte(`{"apiVersion":"example.com/` + version +
		`","kind":"Gadget","metadata":{"name":"a","namespace":"b","finalizers":["f"]},"spec":` + spec + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestCustomTypes(t *testing.T) {
	d := define(t, NewTypes(nil), []byte(gadgets))
	const finalizers = `"f:metadata":{"f:finalizers":{".":{},"v:\"f\"":{}}}`
	tests := map[string]struct{ version, spec, want string }{
		"scalars": {"v1", `{"size":1,"any":"x"}`, `{".":{},"f:any":{},"f:size":{}}`},
		"a list by keys, one of them by default": {"v1", `{"ports":[{"port":1},{"port":1,"protocol":"UDP","name":"n"}]}`,
			`{".":{},"f:ports":{".":{},"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},` +
				`"k:{\"port\":1,\"protocol\":\"UDP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{}}}}`},
		"an atomic map":      {"v1", `{"atom":{"a":"1","b":"2"}}`, `{".":{},"f:atom":{}}`},
		"a list is atomic":   {"v1", `{"list":["a","b"]}`, `{".":{},"f:list":{}}`},
		"a map":              {"v1", `{"labels":{"a":"1"}}`, `{".":{},"f:labels":{".":{},"f:a":{}}}`},
		"null":               {"v1", `{"maybe":null}`, `{".":{},"f:maybe":{}}`},
		"what is not in it":  {"v1", `{"free":{"a":{"b":[1]}}}`, `{".":{},"f:free":{".":{},"f:a":{".":{},"f:b":{}}}}`},
		"an embedded object": {"v1", `{"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n","finalizers":["g"]},"spec":{"x":[1]}}}`, `{".":{},"f:template":{".":{},"f:apiVersion":{},"f:kind":{},"f:metadata":{".":{},"f:finalizers":{".":{},"v:\"g\"":{}},"f:name":{}},"f:spec":{".":{},"f:x":{}}}}`},
		"embedded in a list": {"v1", `{"templates":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n"}}]}`, `{".":{},"f:templates":{}}`},
		"another version":    {"v2", `{"size":1}`, `{}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			obj := gadget(t, test.version, test.spec)
			if _, err := d.fields(test.version, "").Update(nil, obj, "m"); err != nil {
				t.Fatal(err)
			}
			want := []string{`m Update "" example.com/` + test.version + ` 2020-01-02T03:04:05Z {` + finalizers + `,"f:spec":` + test.want + `}`}
			if diff := cmp.Diff(want, owned(obj)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A version without a schema has no types, not even of metadata.
func TestCustomKindWithoutSchema(t *testing.T) {
	d := define(t, NewTypes(nil), []byte(gadgets))
	obj := gadget(t, "v3", `{"list":[{"a":1}],"x":{"y":1}}`)
	if _, err := d.fields("v3", "").Update(nil, obj, "m"); err != nil {
		t.Fatal(err)
	}
	want := []string{`m Update "" example.com/v3 2020-01-02T03:04:05Z ` +
		`{"f:metadata":{"f:finalizers":{}},"f:spec":{".":{},"f:list":{},"f:x":{".":{},"f:y":{}}}}`}
	if diff := cmp.Diff(want, owned(obj)); diff != "" {
		t.Error(diff)
	}
}

func TestCustomTypesAreNotStructural(t *testing.T) {
	s := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"array"}}}
	if _, err := NewCustomTypes(NewTypes(nil), map[schema.GroupVersionKind]*spec.Schema{{Kind: "X"}: &s}, false); err == nil {
		t.Error("accepted a list without items")
	}
}

func TestCustomTypesLeaveSchemasAlone(t *testing.T) {
	d := define(t, NewTypes(nil), []byte(gadgets))
	s := d.schemas["v1"].ToKubeOpenAPI()
	for range 2 {
		if _, err := NewCustomTypes(NewTypes(nil), map[schema.GroupVersionKind]*spec.Schema{d.kind("v1"): s}, false); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(asMap(t, d.schemas["v1"].ToKubeOpenAPI()), asMap(t, s)); diff != "" {
		t.Error(diff)
	}
}

// Old definitions may keep fields that their schemas do not have.
func TestCustomTypesThatPreserveUnknownFields(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	s := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"spec": {SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{"a": *spec.StringProperty()}}},
	}}}
	for preserve, want := range map[bool]int{true: 1, false: 0} {
		types, err := NewCustomTypes(NewTypes(nil), map[schema.GroupVersionKind]*spec.Schema{gvk: &s}, preserve)
		if err != nil {
			t.Fatal(err)
		}
		obj := gadget(t, "v1", `{"other":1}`)
		NewFields(types, nil, Endpoint{Kind: gvk, Custom: true}).Update(nil, obj, "m")
		if got := len(entriesOf(obj)); got != want {
			t.Errorf("preserve is %v: %d managers, want %d", preserve, got, want)
		}
	}
}

// Other kinds are as before.
func TestCustomTypesKnowBuiltInKinds(t *testing.T) {
	base := NewTypes(nil)
	d := define(t, base, []byte(gadgets))
	for gvk, want := range map[schema.GroupVersionKind]bool{
		d.kind("v1"): true, d.kind("v3"): true, d.kind("v4"): false, podKind: true,
	} {
		if got := d.types.Knows(gvk); got != want {
			t.Errorf("%v: known is %v", gvk, got)
		}
	}
	if base.Knows(d.kind("v1")) {
		t.Error("the base has learned of a custom kind")
	}
	want := owned(ownedPod(t, testFields(base, podKind, "status")))
	if diff := cmp.Diff(want, owned(ownedPod(t, testFields(d.types, podKind, "status")))); diff != "" {
		t.Error(diff)
	}
}

func TestCustomVersionsAreConverted(t *testing.T) {
	d := define(t, NewTypes(nil), []byte(gadgets))
	live := gadget(t, "v1", `{"size":1,"mode":"slow"}`)
	if _, err := d.fields("v1", "").Update(nil, live, "a"); err != nil {
		t.Fatal(err)
	}
	live.SetUID("u")
	entries := append(entriesOf(live), metav1.ManagedFieldsEntry{
		Manager: "gone", Operation: "Update", APIVersion: "example.com/v0", Time: &metav1.Time{Time: aTime},
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:mode":{}}}`),
	})
	live.SetManagedFields(entries)
	live.SetAPIVersion("example.com/v2") // what v2 shows of it
	obj := live.DeepCopy()
	unstructured.SetNestedField(obj.Object, int64(2), "spec", "size")
	before := live.DeepCopy()
	if _, err := d.fields("v2", "").Update(live, obj, "b"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`a Update "" example.com/v1 2020-01-02T03:04:05Z {"f:metadata":{"f:finalizers":{".":{},"v:\"f\"":{}}},"f:spec":{".":{},"f:mode":{}}}`,
		`b Update "" example.com/v2 2020-01-02T03:04:05Z {"f:spec":{}}`,
	}
	if diff := cmp.Diff(want, owned(obj)); diff != "" {
		t.Error(diff)
	}
	_, err := d.fields("v1", "").Apply(withKind(obj, d.kind("v1")), []byte(`{"apiVersion":"example.com/v1","kind":"Gadget","spec":{"size":3}}`), "c", false)
	if err == nil || !strings.Contains(err.Error(), `conflict with "b" using example.com/v2: .spec`) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(before, live); diff != "" {
		t.Errorf("live was changed: %s", diff)
	}
}

func TestCustomConversionThatFails(t *testing.T) {
	d := define(t, NewTypes(nil), []byte(gadgets))
	live := gadget(t, "v1", `{"size":1}`)
	d.fields("v1", "").Update(nil, live, "a")
	live.SetUID("u")
	live.SetAPIVersion("example.com/v2")
	fields := d.fields("v2", "")
	fields.endpoint.Convert = func(runtime.Object, schema.GroupVersion) (runtime.Object, error) {
		return nil, errors.New("no webhook")
	}
	obj := live.DeepCopy()
	unstructured.SetNestedField(obj.Object, int64(2), "spec", "size")
	if _, err := fields.Update(live, obj, "b"); err == nil || !strings.Contains(err.Error(), "no webhook") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(owned(live), owned(obj)); diff != "" {
		t.Error(diff)
	}
}

// Defaults are set in what apply returns, not in what was there.
func TestCustomApplySharesNothing(t *testing.T) {
	d := define(t, NewTypes(nil), []byte(gadgets))
	fields := d.fields("v1", "")
	doc := []byte(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"},"spec":{"size":1,"template":{"apiVersion":"v1","kind":"Pod"}}}`)
	got, err := fields.Apply(nil, doc, "m", false)
	if err != nil {
		t.Fatal(err)
	}
	live := got.(*unstructured.Unstructured)
	if mode, _, _ := unstructured.NestedString(live.Object, "spec", "mode"); mode != "fast" {
		t.Errorf("mode is %q", mode)
	}
	live.SetUID("u")
	unstructured.RemoveNestedField(live.Object, "spec", "mode")
	before := live.DeepCopy()
	for name, doc := range map[string]string{"nothing": string(doc), "something": strings.Replace(string(doc), `"size":1`, `"size":2`, 1)} {
		got, err := fields.Apply(live, []byte(doc), "m", false)
		if err != nil {
			t.Fatal(err)
		}
		unstructured.SetNestedField(got.(*unstructured.Unstructured).Object, "x", "spec", "template", "kind")
		if diff := cmp.Diff(before, live); diff != "" {
			t.Errorf("applying %s changed live: %s", name, diff)
		}
	}
}

// A write that changes nothing keeps its times.
func TestCustomTimes(t *testing.T) {
	d := define(t, NewTypes(nil), []byte(gadgets))
	live := gadget(t, "v1", `{"size":1}`)
	d.fields("v1", "").Update(nil, live, "a")
	live.SetUID("u")
	later := d.fields("v1", "")
	later.endpoint.Now = func() time.Time { return aTime.Add(time.Hour) }
	same := live.DeepCopy()
	later.Update(live, same, "a")
	if !SameButForTimes(live, same) {
		t.Errorf("got %v", owned(same))
	}
	changed := live.DeepCopy()
	unstructured.SetNestedField(changed.Object, int64(2), "spec", "size")
	later.Update(live, changed, "b")
	if got := owned(changed); len(got) != 2 || !strings.Contains(got[0], "a Update \"\" example.com/v1 2020-01-02T03:04:05Z") || !strings.Contains(got[1], "04:04:05Z") {
		t.Errorf("got %v", got)
	}
	if SameButForTimes(live, changed) {
		t.Error("a change of spec is none")
	}
}

func TestCustomUpdateReadsManagedFieldsOfTheClient(t *testing.T) {
	d := define(t, NewTypes(nil), []byte(gadgets))
	live := gadget(t, "v1", `{"size":1}`)
	d.fields("v1", "").Update(nil, live, "a")
	live.SetUID("u")
	tests := map[string]struct {
		sent any
		want []string
	}{
		"none":       {nil, owned(live)},
		"dropped":    {[]any{map[string]any{}}, nil},
		"an empty":   {[]any{}, nil},
		"unreadable": {[]any{map[string]any{"manager": "x", "operation": "Nonsense"}}, owned(live)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			obj := live.DeepCopy()
			obj.Object["metadata"].(map[string]any)["managedFields"] = test.sent
			if test.sent == nil {
				delete(obj.Object["metadata"].(map[string]any), "managedFields")
			}
			if _, err := d.fields("v1", "").Update(live, obj, "b"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, owned(obj)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCustomStatus(t *testing.T) {
	d := define(t, NewTypes(nil), []byte(gadgets))
	live := gadget(t, "v1", `{"size":1}`)
	d.fields("v1", "").Update(nil, live, "a")
	live.SetUID("u")
	obj := live.DeepCopy()
	unstructured.SetNestedField(obj.Object, true, "status", "ready")
	unstructured.SetNestedField(obj.Object, int64(2), "spec", "size") // to be ignored
	d.fields("v1", "status").Update(live, obj, "a")
	want := append(owned(live), `a Update "status" example.com/v1 2020-01-02T03:04:05Z {"f:status":{".":{},"f:ready":{}}}`)
	if diff := cmp.Diff(want, owned(obj)); diff != "" {
		t.Error(diff)
	}
}
