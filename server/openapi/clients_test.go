package openapi_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	explain "k8s.io/kubectl/pkg/explain/v2"
	kubectlopenapi "k8s.io/kubectl/pkg/util/openapi"
	"k8s.io/kubectl/pkg/validation"
)

// Nothing may be lost when a client decodes a document and writes it again.
func TestDocumentsSurviveTheClientsTypes(t *testing.T) {
	for _, path := range v3Paths(t, testDocs()) {
		doc, _ := testDocs().V3(path)
		var parsed spec3.OpenAPI
		checkRoundTrip(t, path, doc.Body, &parsed)
	}
	var swagger spec.Swagger
	checkRoundTrip(t, "v2", testDocs().V2().Body, &swagger)
}

func checkRoundTrip(t *testing.T, name string, body []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	again, err := json.Marshal(into)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := cmp.Diff(parse(t, body), parse(t, again)); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// The document in protobuf, read as client-go does, says what that in JSON says.
func TestProtobufEqualsJSON(t *testing.T) {
	var doc openapiv2.Document
	if err := proto.Unmarshal(testDocs().V2Proto().Body, &doc); err != nil {
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
	want := parse(t, testDocs().V2().Body)
	if diff := cmp.Diff(want, parse(t, again)); diff != "" {
		t.Error(diff)
	}
}

func TestClientGoFindsGroupVersions(t *testing.T) {
	root := openapi3.NewRoot(newClient(t, testDocs()).OpenAPIV3())
	gvs, err := root.GroupVersions()
	if err != nil || len(gvs) < 15 {
		t.Fatalf("group-versions %v, %v", gvs, err)
	}
	doc, err := root.GVSpec(schema.GroupVersion{Group: "apps", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	if doc.Components.Schemas["io.k8s.api.apps.v1.Deployment"] == nil {
		t.Error("no Deployment")
	}
}

func TestKubectlExplains(t *testing.T) {
	client := newClient(t, testDocs()).OpenAPIV3()
	tests := map[string]struct {
		resource string
		field    string
		want     []string
	}{
		"a list of objects": {"deployments", "spec.template.spec.containers", []string{
			"GROUP:      apps", "KIND:       Deployment", "FIELD: containers <[]Container>",
			"List of containers belonging to the pod.", "name\t<string> -required-", "ports\t<[]ContainerPort>"}},
		"an enum":     {"deployments", "spec.template.spec.containers.imagePullPolicy", []string{"ENUM:\n    Always\n    IfNotPresent\n    Never"}},
		"a map":       {"deployments", "metadata.labels", []string{"FIELD: labels <map[string]string>"}},
		"a quantity":  {"deployments", "spec.template.spec.containers.resources.limits", []string{"FIELD: limits <map[string]Quantity>"}},
		"the kind":    {"deployments", "", []string{"Deployment enables declarative updates", "spec\t<DeploymentSpec> -required-"}},
		"a number":    {"deployments", "spec.replicas", []string{"FIELD: replicas <integer>"}},
		"int or text": {"deployments", "spec.strategy.rollingUpdate.maxSurge", []string{"FIELD: maxSurge <IntOrString>"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			gvr := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: test.resource}
			err := explain.PrintModelDescription(strings.FieldsFunc(test.field, func(r rune) bool { return r == '.' }),
				&out, client, gvr, false, 0, "plaintext")
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
		})
	}
}

type resourcesGetter struct{ kubectlopenapi.Resources }

func (g resourcesGetter) OpenAPISchema() (kubectlopenapi.Resources, error) { return g.Resources, nil }

func TestKubectlValidatesByVersion2(t *testing.T) {
	doc, err := newClient(t, testDocs()).OpenAPISchemaWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	resources, err := kubectlopenapi.NewOpenAPIData(doc)
	if err != nil {
		t.Fatal(err)
	}
	consumed := resources.GetConsumes(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "PATCH")
	if !strings.Contains(strings.Join(consumed, " "), "strategic-merge-patch") {
		t.Errorf("PATCH of deployments consumes %v", consumed)
	}
	valid := validation.NewSchemaValidation(resourcesGetter{resources})
	tests := map[string]struct{ spec, want string }{
		"right":         {`{"selector":{},"template":{"spec":{"containers":[{"name":"a"}]}}}`, ""},
		"unknown field": {`{"selector":{},"template":{},"replica":1}`, `unknown field "replica" in io.k8s.api.apps.v1.DeploymentSpec`},
		"missing field": {`{"selector":{}}`, `missing required field "template" in io.k8s.api.apps.v1.DeploymentSpec`},
		"wrong type":    {`{"selector":{},"template":{},"replicas":"many"}`, `invalid type for io.k8s.api.apps.v1.DeploymentSpec.replicas`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := valid.ValidateBytes([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":` + test.spec + `}`))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
