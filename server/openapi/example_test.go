package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/openapi"
)

func ExampleNew() {
	docs := openapi.New(openapi.FromKinds(kinds.All())) // makes nothing yet

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

func ExampleGoType() {
	docs := openapi.New([]openapi.Resource{{
		GVK:    schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
		Plural: "widgets",
		Verbs:  []string{"create"},
		Object: openapi.GoType(func() runtime.Object { return &corev1.ConfigMap{} }),
	}})

	doc, _ := docs.V3("apis/example.com/v1")
	fmt.Println(bytes.Contains(doc.Body, []byte(`"operationId":"createExampleComV1Widget"`)))
	// Output: true
}

func ExampleDocs_Update() {
	docs := openapi.New(nil)
	batch := schema.GroupVersion{Group: "batch", Version: "v1"}
	docs.Update(batch, resourcesOf(batch))

	_, ok := docs.V3("apis/batch/v1")
	fmt.Println(ok)
	// Output: true
}

func ExampleFromDefinition() {
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "stable.example.com",
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "CronTab", Plural: "crontabs"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Description: "Runs something at times."},
		}}},
	}}
	docs := openapi.New(nil)
	docs.Update(schema.GroupVersion{Group: "stable.example.com", Version: "v1"}, openapi.FromDefinition(crd))
	doc, ok := docs.V3("apis/stable.example.com/v1")
	fmt.Println(ok, bytes.Contains(doc.Body, []byte(`"com.example.stable.v1.CronTab":{"description":"Runs something at times."`)))
	// Output: true true
}
