package openapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/openapi"
)

// testDocs are the documents of the built-in kinds, shared by the tests that
// only read.
var testDocs = sync.OnceValue(func() *openapi.Docs { return openapi.New(openapi.FromKinds(kinds.All())) })

// serve answers what a server does under /openapi.
func serve(docs *openapi.Docs) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi/v3", func(w http.ResponseWriter, r *http.Request) {
		w.Write(docs.Index().Body)
	})
	mux.HandleFunc("GET /openapi/v3/{path...}", func(w http.ResponseWriter, r *http.Request) {
		doc, ok := docs.V3(r.PathValue("path"))
		if !ok {
			http.NotFound(w, r)
			return
		}
		if hash := r.URL.Query().Get("hash"); hash != "" && hash != doc.Hash {
			http.Error(w, "the index gave another hash", http.StatusInternalServerError)
			return
		}
		w.Write(doc.Body)
	})
	mux.HandleFunc("GET /openapi/v2", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "protobuf") {
			w.Write(docs.V2Proto().Body)
			return
		}
		w.Write(docs.V2().Body)
	})
	return mux
}

// newClient returns the client that kubectl has of the documents.
func newClient(t *testing.T, docs *openapi.Docs) *discovery.DiscoveryClient {
	t.Helper()
	server := httptest.NewServer(serve(docs))
	t.Cleanup(server.Close)
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// resourcesOf returns the resources of one group-version.
func resourcesOf(gv schema.GroupVersion) []openapi.Resource {
	return slices.DeleteFunc(openapi.FromKinds(kinds.All()), func(r openapi.Resource) bool {
		return r.GVK.GroupVersion() != gv
	})
}

// object is JSON.
type object = map[string]any

func parse(t *testing.T, body []byte) object {
	t.Helper()
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// at walks down JSON by keys and returns nil where there is nothing.
func at(v any, keys ...string) any {
	for _, key := range keys {
		o, ok := v.(object)
		if !ok {
			return nil
		}
		v = o[key]
	}
	return v
}

// v3Paths returns the paths of all documents in the index.
func v3Paths(t *testing.T, docs *openapi.Docs) []string {
	t.Helper()
	var paths []string
	for path := range at(parse(t, docs.Index().Body), "paths").(object) {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

func v3(t *testing.T, docs *openapi.Docs, path string) object {
	t.Helper()
	doc, ok := docs.V3(path)
	if !ok {
		t.Fatalf("no document %s", path)
	}
	return parse(t, doc.Body)
}

// walk calls visit for every object in JSON.
func walk(v any, visit func(object)) {
	switch v := v.(type) {
	case object:
		visit(v)
		for _, inner := range v {
			walk(inner, visit)
		}
	case []any:
		for _, inner := range v {
			walk(inner, visit)
		}
	}
}
