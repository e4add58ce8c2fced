package openapi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAgainstRealDocuments compares our documents with those that Kubernetes
// publishes with its sources, in all that a program may read: everything but
// descriptions. It needs them, which are not in this repository:
//
//	dir=$(go mod download -json k8s.io/kubernetes@v1.37.1 | jq -r .Dir)
//	EVENKEEL_OPENAPI_SPEC=$dir/api/openapi-spec go test ./server/openapi -run RealDocuments
func TestAgainstRealDocuments(t *testing.T) {
	dir := os.Getenv("EVENKEEL_OPENAPI_SPEC")
	if dir == "" {
		t.Skip("EVENKEEL_OPENAPI_SPEC is not set")
	}
	for _, path := range v3Paths(t, testDocs()) {
		t.Run(path, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, "v3", strings.ReplaceAll(path, "/", "__")+"_openapi.json"))
			if err != nil {
				t.Fatal(err)
			}
			ours, real := v3(t, testDocs(), path), parse(t, text)
			walk(ours, forget)
			walk(real, forget)
			forgetNamespaceDelete(ours)
			forgetNamespaceDelete(real)
			compareShared(t, ours, real, "components", "schemas")
			compareShared(t, ours, real, "paths")
		})
	}
}

// compareShared compares what we have of a part of the documents; the real ones
// have more kinds.
func compareShared(t *testing.T, ours, real object, keys ...string) {
	t.Helper()
	theirs, _ := at(real, keys...).(object)
	for name, part := range at(ours, keys...).(object) {
		if theirs[name] == nil {
			t.Errorf("the real document has no %s", name)
		} else if diff := cmp.Diff(theirs[name], part); diff != "" {
			t.Errorf("%s (-real +ours):\n%s", name, diff)
		}
	}
}

// forgetNamespaceDelete: a real server sends the namespace, as ours does, but
// its document says that it sends a Status.
func forgetNamespaceDelete(doc object) {
	if op, ok := at(doc, "paths", "/api/v1/namespaces/{name}", "delete").(object); ok {
		delete(op, "responses")
	}
}

// forget removes from an object what we do otherwise on purpose.
func forget(o object) {
	if _, isText := o["description"].(string); isText {
		delete(o, "description")
	}
	if _, isList := o["enum"].([]any); isList {
		delete(o, "enum") // left out of the published documents, not of what a real server sends
	}
	for key := range o {
		if strings.Contains(key, "cbor") {
			delete(o, key)
		}
	}
	if params, ok := o["parameters"].([]any); ok {
		o["parameters"] = supported(params)
		if len(o["parameters"].([]any)) == 0 {
			delete(o, "parameters")
		}
	}
}

func supported(params []any) []any {
	kept := []any{}
	for _, p := range params {
		switch at(p, "name") {
		case "shardSelector", "ignoreStoreReadErrorWithClusterBreakingPotential":
		default:
			kept = append(kept, p)
		}
	}
	return kept
}
