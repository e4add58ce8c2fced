package discovery_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/discovery"
)

func Example() {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	docs := discovery.New([]discovery.Resource{{
		GroupVersion:       gvk.GroupVersion(),
		Kind:               gvk.Kind,
		Resource:           "widgets",
		Singular:           "widget",
		Namespaced:         true,
		Verbs:              []string{"get", "list"},
		StorageVersionHash: discovery.StorageVersionHash(gvk),
		Custom:             true,
	}}, "127.0.0.1:6443")

	body, contentType, _, _ := docs.Lookup("/apis/example.com/v1", discovery.JSON)
	fmt.Println(contentType)
	fmt.Print(string(body))
	body, contentType, _, _ = docs.Lookup("/apis", discovery.AggregatedJSON)
	fmt.Println(contentType)
	fmt.Print(string(body))
	_, _, _, ok := docs.Lookup("/apis/example.com/v2", discovery.JSON)
	fmt.Println(ok)
	// Output:
	// application/json
	// {"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["get","list"],"storageVersionHash":"gIwvi5rymmg="}]}
	// application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList
	// {"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[{"resource":"widgets","responseKind":{"group":"example.com","version":"v1","kind":"Widget"},"scope":"Namespaced","singularResource":"widget","verbs":["get","list"]}],"freshness":"Current"}]}]}
	// false
}
