package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	explain "k8s.io/kubectl/pkg/explain/v2"
	kubectlopenapi "k8s.io/kubectl/pkg/util/openapi"
	"k8s.io/kubectl/pkg/validation"
	"sigs.k8s.io/yaml"

	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/openapi"
)

const (
	stable  = "apis/stable.my-example.com/"
	crontab = "com.my-example.stable.v1.CronTab"
)

// testDefinition has every feature of schemas.
func testDefinition(t testing.TB) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile("testdata/definition.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// definitionResource is the kind of definitions themselves.
func definitionResource() openapi.Resource {
	return openapi.Resource{
		GVK:    apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		Plural: "customresourcedefinitions",
		Verbs:  []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		Object: openapi.GoType(func() runtime.Object { return &apiextensionsv1.CustomResourceDefinition{} }),
		List:   openapi.GoType(func() runtime.Object { return &apiextensionsv1.CustomResourceDefinitionList{} }),
	}
}

// customDocs are those of the definition, of definitions, and of one built-in kind.
func customDocs(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) *openapi.Docs {
	t.Helper()
	docs := openapi.New(append(resourcesOf(schema.GroupVersion{Group: "autoscaling", Version: "v1"}), definitionResource()))
	for _, r := range openapi.FromDefinition(crd) {
		docs.Update(r.GVK.GroupVersion(), []openapi.Resource{r})
	}
	return docs
}

// models.json is what the builder of apiextensions-apiserver 0.37.2 makes of
// definition.yaml, but for descriptions of the fields that all objects have.
func TestModelsOfCustomResources(t *testing.T) {
	text, err := os.ReadFile("testdata/models.json")
	if err != nil {
		t.Fatal(err)
	}
	real := parse(t, text)
	docs := customDocs(t, testDefinition(t))
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		for _, kind := range []string{"CronTab", "CronTabList"} {
			name := "com.my-example.stable." + version + "." + kind
			ours := map[string]any{
				"v2": at(parse(t, docs.V2().Body), "definitions", name),
				"v3": at(v3(t, docs, stable+version), "components", "schemas", name),
			}
			for of, got := range ours {
				walk(got, forgetObjectFields)
				if diff := cmp.Diff(at(real, of, name), got); diff != "" {
					t.Errorf("%s in %s: -real +ours\n%s", name, of, diff)
				}
			}
		}
	}
}

func forgetObjectFields(o object) {
	text, _ := o["description"].(string)
	switch {
	case strings.HasPrefix(text, "APIVersion defines"), strings.HasPrefix(text, "Kind is a string"), strings.HasPrefix(text, "Standard "):
		o["description"] = "..."
	case strings.HasPrefix(text, "The group and version of the object"), strings.HasPrefix(text, "The kind of the object"):
		delete(o, "description")
	}
}

func TestFromDefinition(t *testing.T) {
	crd := testDefinition(t)
	got := map[string][]string{} // subresources by version
	for _, r := range openapi.FromDefinition(crd) {
		if r.GVK.GroupKind().String() != "CronTab.stable.my-example.com" || r.Plural != "crontabs" || !r.Namespaced || !r.JSONOnly || len(r.Verbs) != 8 {
			t.Errorf("got %+v", r)
		}
		got[r.GVK.Version] = []string{}
		for _, s := range r.Subresources {
			got[r.GVK.Version] = append(got[r.GVK.Version], s.Name)
		}
	}
	if diff := cmp.Diff(map[string][]string{"v1": {"status", "scale"}, "v1beta1": {}, "v1alpha1": {}}, got); diff != "" {
		t.Error(diff)
	}
	crd.Spec.Scope, crd.Spec.Names.ListKind = apiextensionsv1.ClusterScoped, ""
	if r := openapi.FromDefinition(crd)[0]; r.Namespaced || r.ListKind != "CronTabList" {
		t.Errorf("namespaced is %v, the list's kind %q", r.Namespaced, r.ListKind)
	}
}

func TestPathsOfCustomResources(t *testing.T) {
	doc := v3(t, customDocs(t, testDefinition(t)), stable+"v1")
	const one = "/apis/stable.my-example.com/v1/namespaces/{namespace}/crontabs/{name}"
	paths := at(doc, "paths").(object)
	for _, path := range []string{"/apis/stable.my-example.com/v1/crontabs", strings.TrimSuffix(one, "/{name}"), one, one + "/status", one + "/scale"} {
		if paths[path] == nil {
			t.Errorf("no %s", path)
		}
	}
	const kind = "map[group:stable.my-example.com kind:CronTab version:v1]"
	for _, path := range []string{one, one + "/status", one + "/scale"} {
		patch := at(paths[path], "patch")
		media := slices.Sorted(keysOf(at(patch, "requestBody", "content")))
		if diff := cmp.Diff([]string{"application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"}, media); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if got := fmt.Sprint(at(patch, "x-kubernetes-group-version-kind")); got != kind {
			t.Errorf("%s is of %s", path, got)
		}
		for _, param := range []string{"fieldValidation", "dryRun", "fieldManager", "force"} {
			if !hasQuery(patch, param) {
				t.Errorf("%s: no parameter %s", path, param)
			}
		}
	}
	if got := at(paths[one], "get", "operationId"); got != "readStableMyExampleComV1NamespacedCronTab" {
		t.Errorf("operation %v", got)
	}
	if got := fmt.Sprint(at(doc, "components", "schemas", "io.k8s.api.autoscaling.v1.Scale", "x-kubernetes-group-version-kind")); got != "[map[group:autoscaling kind:Scale version:v1]]" {
		t.Errorf("Scale is of %s", got)
	}
}

func keysOf(o any) func(func(string) bool) {
	return func(yield func(string) bool) {
		m, _ := o.(object)
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

func TestCustomDocumentsSurviveTheClientsTypes(t *testing.T) {
	docs := customDocs(t, testDefinition(t))
	for _, path := range v3Paths(t, docs) {
		doc, _ := docs.V3(path)
		var parsed spec3.OpenAPI
		checkRoundTrip(t, path, doc.Body, &parsed)
		checkReferences(t, path, parse(t, doc.Body))
	}
	var swagger spec.Swagger
	checkRoundTrip(t, "v2", docs.V2().Body, &swagger)
	checkReferences(t, "v2", parse(t, docs.V2().Body))
}

func TestCustomProtobufEqualsJSON(t *testing.T) {
	docs := customDocs(t, testDefinition(t))
	var doc openapiv2.Document
	if err := proto.Unmarshal(docs.V2Proto().Body, &doc); err != nil {
		t.Fatal(err)
	}
	var fromProto spec.Swagger
	if ok, err := fromProto.FromGnostic(&doc); err != nil || !ok {
		t.Fatalf("read: %v, complete: %v", err, ok)
	}
	again, err := json.Marshal(&fromProto)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parse(t, docs.V2().Body), parse(t, again)); diff != "" {
		t.Error(diff)
	}
}

func TestKubectlExplainsCustomResources(t *testing.T) {
	client := newClient(t, customDocs(t, testDefinition(t))).OpenAPIV3()
	custom := schema.GroupVersionResource{Group: "stable.my-example.com", Version: "v1", Resource: "crontabs"}
	definitions := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	tests := map[string]struct {
		of    schema.GroupVersionResource
		field string
		want  []string
	}{
		"the kind":            {custom, "", []string{"KIND:       CronTab", "CronTab runs something at times.", "spec\t<Object> -required-", "metadata\t<ObjectMeta>", "apiVersion\t<string>"}},
		"its spec":            {custom, "spec", []string{"cron\t<string> -required-", "map\t<[]Object>", "values\t<map[string]integer>", "any\t<Object>"}},
		"an enum":             {custom, "spec.mode", []string{"ENUM:", "fast", "slow"}},
		"metadata":            {custom, "metadata.labels", []string{"FIELD: labels <map[string]string>"}},
		"an embedded object":  {custom, "spec.embedded.metadata", []string{"FIELD: metadata <ObjectMeta>"}},
		"a list":              {custom, "spec.map.b", []string{"FIELD: b <integer>"}},
		"definitions":         {definitions, "", []string{"KIND:       CustomResourceDefinition", "represents a resource that should be exposed", "spec\t<CustomResourceDefinitionSpec> -required-"}},
		"versions":            {definitions, "spec.versions", []string{"FIELD: versions <[]CustomResourceDefinitionVersion>", "versions is the list of all API versions", "served\t<boolean> -required-", "schema describes the schema used for"}},
		"a schema":            {definitions, "spec.versions.schema.openAPIV3Schema", []string{"FIELD: openAPIV3Schema <JSONSchemaProps>", "properties\t<map[string]JSONSchemaProps>", "default\t<JSON>", "items\t<JSONSchemaPropsOrArray>"}},
		"a schema in another": {definitions, "spec.versions.schema.openAPIV3Schema.properties.allOf.format", []string{"FIELD: format <string>", "- bsonobjectid: a bson object ID"}},
		"rules":               {definitions, "spec.versions.schema.openAPIV3Schema.x-kubernetes-validations.reason", []string{"FieldValueDuplicate"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := explain.PrintModelDescription(strings.FieldsFunc(test.field, func(r rune) bool { return r == '.' }),
				&out, client, test.of, false, 0, "plaintext")
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(strings.Fields(out.String()), " ")
			for _, want := range test.want {
				if !strings.Contains(text, strings.Join(strings.Fields(want), " ")) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
		})
	}
}

// What kubectl that knows version 2 only would say.
func TestKubectlValidatesCustomResourcesByVersion2(t *testing.T) {
	doc, err := newClient(t, customDocs(t, testDefinition(t))).OpenAPISchemaWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	resources, err := kubectlopenapi.NewOpenAPIData(doc)
	if err != nil {
		t.Fatal(err)
	}
	valid := validation.NewSchemaValidation(resourcesGetter{resources})
	tests := map[string]struct{ version, spec, want string }{
		"right":                {"v1", `{"cron":"*","image":"x","any":1,"level":2,"map":[{"a":"x"}]}`, ""},
		"null":                 {"v1", `{"cron":"*","image":"x","maybe":null,"maybeObject":null}`, ""},
		"any field":            {"v1", `{"cron":"*","image":"x","free":{"b":1},"freer":[1],"embedded":{"kind":"x","z":1}}`, ""},
		"unknown field":        {"v1", `{"cron":"*","image":"x","crom":1}`, `unknown field "crom" in com.my-example.stable.v1.CronTab.spec`},
		"missing field":        {"v1", `{"cron":"*"}`, `missing required field "image"`},
		"wrong type":           {"v1", `{"cron":"*","image":"x","replicas":"many"}`, `invalid type for com.my-example.stable.v1.CronTab.spec.replicas`},
		"any field at the top": {"v1beta1", `{"other":1}`, ""},
		"no schema":            {"v1alpha1", `{"other":1}`, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := valid.ValidateBytes([]byte(`{"apiVersion":"stable.my-example.com/` + test.version + `","kind":"CronTab","metadata":{"name":"x"},"spec":` + test.spec + `}`))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// Names of models and the value of a few keywords, case by case.
func TestSchemaKeywords(t *testing.T) {
	tests := map[string]struct{ schema, v3, v2 string }{
		"bounds":          {`{"type":"integer","minimum":0,"maximum":1.5}`, `{"type":"integer","minimum":0,"maximum":1.5}`, `{"type":"integer","minimum":0,"maximum":1.5}`},
		"a default":       {`{"type":"object","default":{"a": [1, 2]}}`, `{"type":"object","default":{"a":[1,2]}}`, `{"type":"object"}`},
		"null":            {`{"type":"string","nullable":true,"default":null}`, `{"type":"string","nullable":true}`, `{}`},
		"int or string":   {`{"x-kubernetes-int-or-string":true}`, `{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}`, `{"x-kubernetes-int-or-string":true}`},
		"not":             {`{"type":"string","not":{"enum":["a"]}}`, `{"type":"string","not":{"enum":["a"]}}`, `{"type":"string"}`},
		"mixed enum":      {`{"x-kubernetes-preserve-unknown-fields":true,"enum":["a",1,null,{"b":true}]}`, `{"x-kubernetes-preserve-unknown-fields":true,"enum":["a",1,null,{"b":true}]}`, `{"x-kubernetes-preserve-unknown-fields":true,"enum":["a",1,null,{"b":true}]}`},
		"no other values": {`{"type":"object","additionalProperties":false}`, `{"type":"object","additionalProperties":false}`, `{"type":"object","additionalProperties":false}`},
		"list of any":     {`{"type":"array","items":{"x-kubernetes-preserve-unknown-fields":true}}`, `{"type":"array","items":{"x-kubernetes-preserve-unknown-fields":true}}`, `{"type":"array","items":{"x-kubernetes-preserve-unknown-fields":true}}`},
		"list, any":       {`{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"string"}}`, `{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"string"}}`, `{"x-kubernetes-preserve-unknown-fields":true}`},
		"text as it is":   {`{"type":"string","pattern":"<\\d&>\u2028","title":"\"q\""}`, `{"type":"string","pattern":"<\\d&>\u2028","title":"\"q\""}`, `{"type":"string","pattern":"<\\d&>\u2028","title":"\"q\""}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			doc := `{"spec":{"group":"example.com","names":{"kind":"X","plural":"xs"},"versions":[{"name":"v1","served":true,` +
				`"schema":{"openAPIV3Schema":{"type":"object","properties":{"f":` + test.schema + `}}}}]}}`
			if err := json.Unmarshal([]byte(doc), crd); err != nil {
				t.Fatal(err)
			}
			docs := openapi.New(openapi.FromDefinition(crd))
			got := at(v3(t, docs, "apis/example.com/v1"), "components", "schemas", "com.example.v1.X", "properties", "f")
			if diff := cmp.Diff(any(parse(t, []byte(test.v3))), got); diff != "" {
				t.Errorf("v3: %s", diff)
			}
			got = at(parse(t, docs.V2().Body), "definitions", "com.example.v1.X", "properties", "f")
			if diff := cmp.Diff(any(parse(t, []byte(test.v2))), got); diff != "" {
				t.Errorf("v2: %s", diff)
			}
		})
	}
}

// A definition is looked at when a document is asked for, and never changed.
func TestDefinitionsAreLeftAlone(t *testing.T) {
	crd := testDefinition(t)
	docs := customDocs(t, crd)
	docs.V2()
	docs.V2Proto()
	docs.Index()
	docs.V3(stable + "v1")
	if diff := cmp.Diff(testDefinition(t), crd); diff != "" {
		t.Error(diff)
	}
}

func TestDefinitionsShareAGroupVersion(t *testing.T) {
	one, other := testDefinition(t), testDefinition(t)
	other.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Other", ListKind: "Others", Plural: "others"}
	docs := openapi.New(openapi.FromKinds(kinds.All()))
	gv := schema.GroupVersion{Group: "stable.my-example.com", Version: "v1"}
	docs.Update(gv, []openapi.Resource{openapi.FromDefinition(one)[0], openapi.FromDefinition(other)[0]})
	doc := v3(t, docs, stable+"v1")
	for _, name := range []string{crontab, crontab + "List", "com.my-example.stable.v1.Other", "com.my-example.stable.v1.Others"} {
		if at(doc, "components", "schemas", name) == nil {
			t.Errorf("no %s", name)
		}
	}
	if got := fmt.Sprint(at(doc, "components", "schemas", "com.my-example.stable.v1.Others", "x-kubernetes-group-version-kind")); !strings.Contains(got, "kind:Others") {
		t.Errorf("the list is of %s", got)
	}
}
