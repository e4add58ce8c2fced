package openapi_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/openapi"
)

const schemas = "io.k8s.api."

// What the documents must say of the types that are used most, as
// kube-apiserver 1.37 says it.
func TestModels(t *testing.T) {
	const meta = "io.k8s.apimachinery.pkg.apis.meta.v1."
	tests := map[string]struct {
		path  string
		model string
		keys  []string
		want  string
	}{
		"deployment is of its kind": {"apis/apps/v1", schemas + "apps.v1.Deployment", []string{"x-kubernetes-group-version-kind"},
			`[{"group":"apps","kind":"Deployment","version":"v1"}]`},
		"a list is of its kind": {"apis/apps/v1", schemas + "apps.v1.DeploymentList", []string{"x-kubernetes-group-version-kind"},
			`[{"group":"apps","kind":"DeploymentList","version":"v1"}]`},
		"delete options are of each group": {"apis/apps/v1", meta + "DeleteOptions", []string{"x-kubernetes-group-version-kind"},
			`[{"group":"","kind":"DeleteOptions","version":"v1"},{"group":"apps","kind":"DeleteOptions","version":"v1"}]`},
		"an object in another is of its kind": {"apis/apps/v1", schemas + "core.v1.PersistentVolumeClaim", []string{"x-kubernetes-group-version-kind"},
			`[{"group":"","kind":"PersistentVolumeClaim","version":"v1"}]`},
		"the scale of another group": {"apis/apps/v1", schemas + "autoscaling.v1.Scale", []string{"x-kubernetes-group-version-kind"},
			`[{"group":"autoscaling","kind":"Scale","version":"v1"}]`},
		"required without omitempty": {"apis/apps/v1", schemas + "apps.v1.DeploymentSpec", []string{"required"}, `["selector","template"]`},
		"optional by comment":        {"apis/apps/v1", schemas + "apps.v1.StatefulSetSpec", []string{"required"}, `["selector","template"]`},
		"required by comment":        {"apis/apps/v1", schemas + "apps.v1.Deployment", []string{"required"}, `["spec"]`},
		"one required field":         {"api/v1", schemas + "core.v1.PodSpec", []string{"required"}, `["containers"]`},
		"container":                  {"api/v1", schemas + "core.v1.Container", []string{"required"}, `["name"]`},
		"integers have a format": {"apis/apps/v1", schemas + "apps.v1.DeploymentSpec", []string{"properties", "replicas"},
			`{"description":"Number of desired pods. This is a pointer to distinguish between explicit zero and not specified. Defaults to 1.","format":"int32","type":"integer"}`},
		"lists by key": {"api/v1", schemas + "core.v1.Container", []string{"properties", "ports", "x-kubernetes-list-map-keys"}, `["containerPort","protocol"]`},
		"list type":    {"api/v1", schemas + "core.v1.PodSpec", []string{"properties", "containers", "x-kubernetes-list-type"}, `"map"`},
		"merge key":    {"api/v1", schemas + "core.v1.PodSpec", []string{"properties", "containers", "x-kubernetes-patch-merge-key"}, `"name"`},
		"strategy":     {"api/v1", schemas + "core.v1.PodSpec", []string{"properties", "volumes", "x-kubernetes-patch-strategy"}, `"merge,retainKeys"`},
		"atomic list":  {"api/v1", schemas + "core.v1.Container", []string{"properties", "args", "x-kubernetes-list-type"}, `"atomic"`},
		"atomic map":   {"api/v1", schemas + "core.v1.PodSpec", []string{"properties", "nodeSelector", "x-kubernetes-map-type"}, `"atomic"`},
		"atomic type":  {"api/v1", schemas + "core.v1.SecretKeySelector", []string{"x-kubernetes-map-type"}, `"atomic"`},
		"granular use of an atomic type": {"api/v1", schemas + "core.v1.PersistentVolumeSpec",
			[]string{"properties", "claimRef", "x-kubernetes-map-type"}, `"granular"`},
		"set":                  {"api/v1", meta + "ObjectMeta", []string{"properties", "finalizers", "x-kubernetes-list-type"}, `"set"`},
		"union":                {"api/v1", schemas + "core.v1.SeccompProfile", []string{"x-kubernetes-unions"}, `[{"discriminator":"type","fields-to-discriminateBy":{"localhostProfile":"LocalhostProfile"}}]`},
		"a default by comment": {"api/v1", schemas + "core.v1.ContainerPort", []string{"properties", "protocol", "default"}, `"TCP"`},
		"a default by constant": {"api/v1", schemas + "core.v1.AzureDiskVolumeSource",
			[]string{"properties", "cachingMode", "default"}, `"ReadWrite"`},
		"a default by type":  {"api/v1", schemas + "core.v1.Container", []string{"properties", "name", "default"}, `""`},
		"no default for nil": {"api/v1", meta + "ObjectMeta", []string{"properties", "creationTimestamp", "default"}, `null`},
		"enum":               {"api/v1", schemas + "core.v1.Container", []string{"properties", "imagePullPolicy", "enum"}, `["Always","IfNotPresent","Never"]`},
		"enum from another package": {"apis/discovery.k8s.io/v1", schemas + "discovery.v1.EndpointSlice",
			[]string{"properties", "addressType", "enum"}, `["FQDN","IPv4","IPv6"]`},
		"bytes are base64": {"api/v1", schemas + "core.v1.Secret", []string{"properties", "data", "additionalProperties"}, `{"format":"byte","type":"string"}`},
		"a described reference": {"api/v1", schemas + "core.v1.Pod", []string{"properties", "spec", "allOf"},
			`[{"$ref":"#/components/schemas/io.k8s.api.core.v1.PodSpec"}]`},
		"a reference in a list": {"api/v1", schemas + "core.v1.PodList", []string{"properties", "items", "items"},
			`{"$ref":"#/components/schemas/io.k8s.api.core.v1.Pod"}`},
		"number or string": {"api/v1", "io.k8s.apimachinery.pkg.util.intstr.IntOrString", []string{"oneOf"}, `[{"type":"integer"},{"type":"string"}]`},
		"quantity":         {"api/v1", "io.k8s.apimachinery.pkg.api.resource.Quantity", []string{"oneOf"}, `[{"type":"string"},{"type":"number"}]`},
		"time":             {"api/v1", meta + "Time", []string{"format"}, `"date-time"`},
		"micro time":       {"apis/coordination.k8s.io/v1", meta + "MicroTime", []string{"format"}, `"date-time"`},
		"raw extension":    {"apis/apps/v1", "io.k8s.apimachinery.pkg.runtime.RawExtension", []string{"type"}, `"object"`},
		"fields":           {"api/v1", meta + "FieldsV1", []string{"type"}, `"object"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			doc := v3(t, testDocs(), test.path)
			if at(doc, "components", "schemas", test.model) == nil {
				t.Fatalf("no model %s", test.model)
			}
			got := at(doc, append([]string{"components", "schemas", test.model}, test.keys...)...)
			var want any
			if err := json.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryReferenceResolves(t *testing.T) {
	for _, path := range v3Paths(t, testDocs()) {
		checkReferences(t, path, v3(t, testDocs(), path))
	}
	checkReferences(t, "v2", parse(t, testDocs().V2().Body))
}

func checkReferences(t *testing.T, name string, doc object) {
	t.Helper()
	found := 0
	walk(doc, func(o object) {
		ref, ok := o["$ref"].(string)
		if !ok {
			return
		}
		found++
		to, local := strings.CutPrefix(ref, "#/")
		if !local || at(doc, strings.Split(to, "/")...) == nil {
			t.Errorf("%s: %s leads nowhere", name, ref)
		}
	})
	if found == 0 {
		t.Errorf("%s has no references", name)
	}
}

// kubectl trusts the server to validate, and to dry-run, if every patch
// operation says so; else it asks version 2 and validates by itself.
func TestPatchesTellWhatKubectlLooksFor(t *testing.T) {
	patches := 0
	for _, doc := range v3Paths(t, testDocs()) {
		for path, item := range at(v3(t, testDocs(), doc), "paths").(object) {
			patch := at(item, "patch")
			if at(patch, "x-kubernetes-action") != "patch" {
				continue // nothing, or what a proxy passes on
			}
			patches++
			if at(patch, "x-kubernetes-group-version-kind", "kind") == nil {
				t.Errorf("%s: no kind", path)
			}
			for _, param := range []string{"fieldValidation", "dryRun", "fieldManager", "force"} {
				if !hasQuery(patch, param) {
					t.Errorf("%s: no parameter %s", path, param)
				}
			}
			if at(patch, "requestBody", "content", "application/strategic-merge-patch+json") == nil {
				t.Errorf("%s: no strategic merge patch", path)
			}
		}
	}
	if patches < 50 {
		t.Errorf("only %d patch operations", patches)
	}
}

func hasQuery(operation any, name string) bool {
	params, _ := at(operation, "parameters").([]any)
	for _, p := range params {
		if at(p, "name") == name && at(p, "in") == "query" {
			return true
		}
	}
	return false
}

func TestOperationIDsAreUnique(t *testing.T) {
	seen := map[string]string{}
	for path, item := range at(parse(t, testDocs().V2().Body), "paths").(object) {
		walk(item, func(o object) {
			id, ok := o["operationId"].(string)
			if ok && seen[id] != "" {
				t.Errorf("%s is of %s and of %s", id, path, seen[id])
			}
			if ok {
				seen[id] = path
			}
		})
	}
}

// The steps of the scenario "openapi" that were recorded of kube-apiserver.
func TestRecordedScenario(t *testing.T) {
	f, err := os.Open("../../test/wire/testdata/transcripts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	steps := 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var step struct {
			Scenario string
			Request  struct{ Path string }
			Response struct {
				Status int
				Body   map[string]any
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &step); err != nil || step.Scenario != "openapi" {
			continue
		}
		steps++
		doc, ok := testDocs().V3(strings.TrimPrefix(step.Request.Path, "/openapi/v3/"))
		if ok != (step.Response.Status == 200) {
			t.Errorf("%s: found is %v, recorded was %d", step.Request.Path, ok, step.Response.Status)
		}
		for selected, want := range step.Response.Body {
			if diff := cmp.Diff(want, at(parse(t, doc.Body), selectorKeys(selected)...)); diff != "" {
				t.Errorf("%s: %s", selected, diff)
			}
		}
	}
	if steps == 0 {
		t.Error("no steps recorded")
	}
}

// selectorKeys splits a selector such as a.b['c.d'].e.
func selectorKeys(s string) []string {
	var keys []string
	for i, part := range strings.Split(s, "'") {
		if i%2 == 1 {
			keys = append(keys, part)
			continue
		}
		keys = append(keys, strings.FieldsFunc(part, func(r rune) bool { return strings.ContainsRune(".[]", r) })...)
	}
	return keys
}

// A custom resource has no strategic merge patch and no protobuf.
func TestJSONOnlyResources(t *testing.T) {
	resources := openapi.FromKinds(kinds.All())
	for i := range resources {
		resources[i].JSONOnly = true
	}
	const path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
	item := at(v3(t, openapi.New(resources), "apis/apps/v1"), "paths", path)
	text, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	for _, media := range []string{"protobuf", "strategic-merge-patch"} {
		if strings.Contains(string(text), media) {
			t.Errorf("%s mentions %s", path, media)
		}
	}
	if at(item, "patch", "requestBody", "content", "application/merge-patch+json") == nil {
		t.Errorf("%s has no merge patch", path)
	}
}
