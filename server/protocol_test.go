package server_test

import (
	"bufio"
	"strings"
	"testing"
)

// step is a request and what kube-apiserver 1.36.3 was seen to answer.
type step struct {
	method, path, body string
	headers            []string
	code               int
	has                string // somewhere in the body
	header             [2]string
}

const (
	mergePatch     = "application/merge-patch+json"
	jsonPatch      = "application/json-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
	asTable        = ";as=Table;g=meta.k8s.io;v=v1"
	asPartial      = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

func play(t *testing.T, r *running, steps map[string]step) {
	t.Helper()
	for name, s := range steps {
		t.Run(name, func(t *testing.T) {
			got := r.do(s.method, s.path, s.body, s.headers...)
			if got.code != s.code || !strings.Contains(got.body, s.has) {
				t.Errorf("%s %s: %d %.600s\nwant %d with %s", s.method, s.path, got.code, got.body, s.code, s.has)
			}
			if s.header[0] != "" && got.header.Get(s.header[0]) != s.header[1] {
				t.Errorf("%s: %q, want %q", s.header[0], got.header.Values(s.header[0]), s.header[1])
			}
		})
	}
}

func accept(media string) []string { return []string{"Accept", media} }
func sends(media string) []string  { return []string{"Content-Type", media} }

func withConfigMap(t *testing.T) *running {
	t.Helper()
	r := start(t, memoryStore(t), nil)
	if got := r.do("POST", configMaps, `{"metadata":{"name":"a"},"data":{"a":"1"}}`); got.code != 201 {
		t.Fatal(got.body)
	}
	return r
}

func TestNegotiation(t *testing.T) {
	one, all := configMaps+"/a", configMaps
	json, yaml := [2]string{"Content-Type", "application/json"}, [2]string{"Content-Type", "application/yaml"}
	available := `406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf`
	play(t, withConfigMap(t), map[string]step{
		"nothing":               {"GET", one, "", accept(""), 200, `"kind":"ConfigMap"`, json},
		"anything":              {"GET", one, "", accept("*/*"), 200, `"kind":"ConfigMap"`, json},
		"application/*":         {"GET", one, "", accept("application/*"), 406, available + `"`, json},
		"capitals":              {"GET", one, "", accept("APPLICATION/JSON"), 406, available + `"`, json},
		"comma":                 {"GET", one, "", accept(","), 406, available, json},
		"html":                  {"GET", one, "", accept("text/html"), 406, available + `"`, json},
		"html of a list":        {"GET", all, "", accept("text/html"), 406, available + `, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"`, json},
		"a browser":             {"GET", one, "", accept("text/html,application/xml;q=0.9,*/*;q=0.8"), 200, `"kind":"ConfigMap"`, json},
		"quality":               {"GET", one, "", accept("application/json;q=0.5,application/yaml"), 200, "kind: ConfigMap", yaml},
		"table of protobuf":     {"GET", one, "", accept("application/vnd.kubernetes.protobuf" + asTable), 406, "only the following media types are accepted", json},
		"unknown kind":          {"GET", one, "", accept("application/json;as=Foo;g=meta.k8s.io;v=v1"), 406, "only the following media types are accepted", json},
		"old table":             {"GET", one, "", accept("application/json;as=Table;g=meta.k8s.io;v=v1beta1"), 200, `"apiVersion":"meta.k8s.io/v1beta1"`, json},
		"list as one":           {"GET", all, "", accept("application/json" + asPartial), 406, "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)", json},
		"one as list":           {"GET", one, "", accept("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"), 406, "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)", json},
		"errors are no tables":  {"GET", all + "/nope", "", accept("application/yaml" + asTable), 404, `"reason":"NotFound"`, json},
		"errors in YAML":        {"GET", all + "/nope", "", accept("application/yaml"), 404, "reason: NotFound", yaml},
		"includeObject":         {"GET", all + "?includeObject=Foo", "", accept("application/json" + asTable), 400, `includeObject: Invalid value: \"Foo\": must be 'Metadata', 'Object', 'None', or empty`, json},
		"includeObject, no use": {"GET", all + "?includeObject=Foo", "", nil, 200, "ConfigMapList", json},
		"pretty":                {"GET", one + "?pretty=1", "", nil, 200, "{\n  \"kind\"", json},
		"not pretty":            {"GET", one + "?pretty=x", "", nil, 200, `{"kind"`, json},
		"pretty for people":     {"GET", one, "", []string{"User-Agent", "curl/8"}, 200, "{\n  \"kind\"", json},
	})
}

func TestPaths(t *testing.T) {
	missing, text := "the server could not find the requested resource", "404 page not found"
	play(t, withConfigMap(t), map[string]step{
		"index":                 {"GET", "/", "", nil, 200, `"/apis/apps/v1"`, [2]string{}},
		"unknown":               {"GET", "/foo", "", nil, 404, text, [2]string{"Cache-Control", "no-cache, private"}},
		"unknown group":         {"GET", "/apis/nope/v1/foos", "", nil, 404, text, [2]string{}},
		"unknown version":       {"GET", "/apis/apps/v9/x", "", nil, 404, missing, [2]string{}},
		"unknown core version":  {"GET", "/api/v2/pods", "", nil, 404, missing, [2]string{}},
		"unknown resource":      {"GET", "/api/v1/nopes", "", nil, 404, missing, [2]string{}},
		"double slash first":    {"GET", "//api/v1", "", nil, 404, text, [2]string{}},
		"double slash":          {"GET", "/api/v1//namespaces", "", nil, 404, missing, [2]string{}},
		"empty namespace":       {"GET", "/api/v1/namespaces//pods", "", nil, 200, "PodList", [2]string{}},
		"double slash, name":    {"GET", configMaps + "//x", "", nil, 404, missing, [2]string{}},
		"trailing slash":        {"GET", configMaps + "/", "", nil, 200, "ConfigMapList", [2]string{}},
		"escaped":               {"GET", "/api/v1/namespaces/%64efault", "", nil, 200, `"name":"default"`, [2]string{}},
		"dots":                  {"GET", configMaps + "/..", "", nil, 400, `Name parameter invalid: \"..\": may not be '..'`, [2]string{}},
		"openapi, slash":        {"GET", "/openapi/v2/", "", nil, 404, "", [2]string{}},
		"review by name":        {"GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x", "", nil, 404, missing, [2]string{}},
		"finalize is for PUT":   {"GET", "/api/v1/namespaces/default/finalize", "", nil, 405, "", [2]string{}},
		"OPTIONS":               {"OPTIONS", configMaps, "", nil, 405, "MethodNotAllowed", [2]string{}},
		"OPTIONS of nothing":    {"OPTIONS", "/nope", "", nil, 404, text, [2]string{}},
		"old watch, posted":     {"POST", "/api/v1/watch/namespaces/default/configmaps", "{}", nil, 405, "", [2]string{}},
		"watch of one is a get": {"GET", configMaps + "/a?watch=1", "", nil, 200, `{"kind":"ConfigMap"`, [2]string{}},
		"timeout":               {"GET", configMaps + "?timeout=5", "", nil, 400, `invalid timeout specified in the request URL - time: missing unit in duration \"5\"`, [2]string{}},
		"revision of a get":     {"GET", configMaps + "/a?resourceVersion=x", "", nil, 500, `"message":"resourceVersion: Invalid value: \"x\"`, [2]string{}},
	})
}

func TestWritesAreRefused(t *testing.T) {
	one := configMaps + "/a"
	named := func(metadata string) string { return `{"metadata":{"name":"x"` + metadata + `}}` }
	play(t, withConfigMap(t), map[string]step{
		"no object":             {"POST", configMaps, "[]", nil, 400, "(5b5d)", [2]string{}},
		"cut off":               {"POST", configMaps, `{"kind":"ConfigMap"`, nil, 400, `({\"kind\":\"ConfigMap\")`, [2]string{}},
		"revision":              {"POST", configMaps, named(`,"resourceVersion":"5"`), nil, 500, `"message":"resourceVersion should not be set on objects to be created","code":500`, [2]string{}},
		"bare finalizer":        {"POST", configMaps, named(`,"finalizers":["x"]`), nil, 422, "name is neither a standard finalizer name nor is it fully qualified", [2]string{}},
		"owner named twice":     {"POST", configMaps + "?dryRun=All", named(`,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"1"},{"apiVersion":"v1","kind":"Pod","name":"a","uid":"1"}]`), nil, 201, `"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"1"}]`, [2]string{"Warning", `299 - ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: 1"`}},
		"YAML key twice":        {"POST", configMaps + "?dryRun=All", "metadata: {name: z}\ndata:\n  a: b\n  a: c\n", sends("application/yaml"), 201, "", [2]string{"Warning", `299 - "line 4: key \"a\" already set in map"`}},
		"PUT without a name":    {"PUT", one, `{"data":{}}`, nil, 400, "the name of the object (a based on URL) was undeterminable: name must be provided", [2]string{}},
		"PUT of a revision":     {"PUT", one, `{"metadata":{"name":"a","resourceVersion":"abc"}}`, nil, 500, `"message":"strconv.ParseUint: parsing \"abc\": invalid syntax"`, [2]string{}},
		"PUT of another":        {"PUT", one, `{"metadata":{"name":"a","uid":"zz"}}`, nil, 409, "Precondition failed: UID in precondition: zz", [2]string{}},
		"PUT of a deletion":     {"PUT", one, `{"metadata":{"name":"a","deletionTimestamp":"2001-01-01T00:00:00Z"}}`, nil, 422, "metadata.deletionTimestamp: Invalid value", [2]string{}},
		"patch of a uid":        {"PATCH", one, `{"metadata":{"uid":"zz"}}`, sends(mergePatch), 422, "metadata.uid: Invalid value", [2]string{}},
		"patch of a kind":       {"PATCH", one, `{"kind":"Secret","data":null}`, sends(mergePatch), 422, "converting (v1.Secret) to (core.ConfigMap): unknown conversion", [2]string{}},
		"no kind is the kind":   {"PATCH", one + "?dryRun=All", `{"kind":null}`, sends(mergePatch), 200, `"kind":"ConfigMap"`, [2]string{}},
		"strategic kind":        {"PATCH", one + "?dryRun=All", `{"kind":"Secret"}`, sends(strategicPatch), 200, `"kind":"ConfigMap"`, [2]string{}},
		"patch of a type":       {"PATCH", one, `{"data":{"a":1}}`, sends(mergePatch), 422, "cannot unmarshal number into Go struct field ConfigMap.data of type string", [2]string{}},
		"strict patch":          {"PATCH", one + "?fieldValidation=Strict", `{"foo":1,"data":{"a":"1","a":"2"}}`, sends(mergePatch), 422, `strict decoding error: duplicate field \"data.a\", unknown field \"foo\"`, [2]string{}},
		"strict JSON patch":     {"PATCH", one + "?fieldValidation=Strict", `[{"op":"add","path":"/foo","value":1,"value":2}]`, sends(jsonPatch), 422, `json patch duplicate field \"[0].value\", unknown field \"foo\"`, [2]string{}},
		"strategic strict":      {"PATCH", one + "?fieldValidation=Strict", `{"foo":1}`, sends(strategicPatch), 422, `Invalid value: \"map[foo:1]\": strict decoding error: unknown field \"foo\"`, [2]string{}},
		"apply another name":    {"PATCH", one + "?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`, sends(applyPatch), 400, "does not match the name on the URL", [2]string{}},
		"apply no such field":   {"PATCH", one + "?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"foo":1}`, sends(applyPatch), 500, `"message":"failed to create typed patch object`, [2]string{}},
		"delete default":        {"DELETE", "/api/v1/namespaces/default", "", nil, 403, `namespaces \"default\" is forbidden: this namespace may not be deleted`, [2]string{}},
		"delete kube-system":    {"DELETE", "/api/v1/namespaces/kube-system?dryRun=All", "", nil, 403, "this namespace may not be deleted", [2]string{}},
		"delete by another":     {"DELETE", one, `{"kind":"Foo","apiVersion":"v1"}`, nil, 400, `no kind \"Foo\" is registered`, [2]string{}},
		"rules of no namespace": {"POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{}}`, nil, 400, "no namespace on request", [2]string{}},
	})
}

func TestScaleDryRunAnswersWithAScale(t *testing.T) {
	r := start(t, memoryStore(t), nil)
	const deployments = "/apis/apps/v1/namespaces/default/deployments"
	if got := r.do("POST", deployments, `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`); got.code != 201 {
		t.Fatal(got.body)
	}
	play(t, r, map[string]step{
		"dry run": {"PATCH", deployments + "/d/scale?dryRun=All", `{"spec":{"replicas":9}}`, sends(mergePatch), 200, `"kind":"Scale"`, [2]string{}},
		"uid":     {"PUT", deployments + "/d/scale", `{"metadata":{"name":"d","uid":"x"},"spec":{"replicas":2}}`, nil, 409, "Precondition failed", [2]string{}},
		"no name": {"PUT", deployments + "/d/scale", `{"spec":{"replicas":2}}`, nil, 400, "name must be provided", [2]string{}},
	})
}

func TestReviewsAreNoTables(t *testing.T) {
	play(t, start(t, memoryStore(t), nil), map[string]step{
		"access": {"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`,
			accept("application/json" + asTable), 406, "only the following media types are accepted", [2]string{}},
	})
}

func TestListOptions(t *testing.T) {
	r := withConfigMap(t)
	r.do("POST", configMaps, `{"metadata":{"name":"b"}}`)
	play(t, r, map[string]step{
		"any state is whole":    {"GET", configMaps + "?resourceVersion=0&limit=1", "", nil, 200, `"name":"b"`, [2]string{}},
		"token version":         {"GET", configMaps + "?continue=eyJ2IjoiZm9vIn0", "", nil, 400, "server does not recognize this encoded version foo", [2]string{}},
		"token outside":         {"GET", configMaps + "?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi94In0", "", nil, 400, "continue key is not valid: ../x", [2]string{}},
		"token before revision": {"GET", configMaps + "?continue=x&resourceVersion=5", "", nil, 400, "illegal base64 data", [2]string{}},
		"two names":             {"GET", "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.name%3Db", "", nil, 400, "fieldSelector metadata.name doesn't match requested name", [2]string{}},
		"other version's label": {"GET", "/apis/events.k8s.io/v1/events?fieldSelector=involvedObject.kind%3DPod", "", nil, 400, "field label not supported: involvedObject.kind", [2]string{}},
	})
}

// The bookmark of a table has a row of an empty object: each kind must be able
// to show one.
func TestBookmarksOfTables(t *testing.T) {
	r := start(t, memoryStore(t), nil)
	for _, gv := range []string{"/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/networking.k8s.io/v1", "/apis/policy/v1", "/apis/storage.k8s.io/v1", "/apis/autoscaling/v2", "/apis/autoscaling/v1", "/apis/certificates.k8s.io/v1", "/apis/coordination.k8s.io/v1", "/apis/discovery.k8s.io/v1", "/apis/events.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1", "/apis/scheduling.k8s.io/v1", "/apis/node.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"} {
		list, _ := r.do("GET", gv, "").at("resources").([]any)
		for _, item := range list {
			res := item.(map[string]any)
			name := res["name"].(string)
			if !canWatch(res) {
				continue
			}
			path := gv + "/" + name + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=no%3Done"
			watch := r.open("GET", path, nil, "Accept", "application/json"+asTable)
			line, err := bufio.NewReader(watch.Body).ReadString('\n')
			if err != nil || !strings.Contains(line, `"type":"BOOKMARK"`) || !strings.Contains(line, "k8s.io/initial-events-end") {
				t.Errorf("%s/%s: %v %.300s", gv, name, err, line)
			}
			_ = watch.Body.Close()
		}
	}
}

func canWatch(res map[string]any) bool {
	verbs, _ := res["verbs"].([]any)
	for _, v := range verbs {
		if v == "watch" {
			return true
		}
	}
	return false
}
