package openapi_test

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/openapi"
)

func ExampleNew() {
	docs := openapi.New(openapi.FromKinds(testKinds())) // makes nothing yet

	doc, _ := docs.V3("apis/apps/v1")
	var parsed struct {
		Components struct {
			Schemas map[string]struct{ Required []string }
		}
	}
	if err := json.Unmarshal(doc.Body, &parsed); err != nil {
		panic(err)
	}
	fmt.Println(parsed.Components.Schemas["io.k8s.api.apps.v1.DeploymentSpec"].Required)
	// Output: [selector template]
}

func ExampleDocs_Update() {
	docs := openapi.New(nil)
	batch := schema.GroupVersion{Group: "batch", Version: "v1"}
	docs.Update(batch, resourcesOf(batch))

	_, ok := docs.V3("apis/batch/v1")
	fmt.Println(ok)
	// Output: true
}
