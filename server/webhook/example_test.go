package webhook_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/webhook"
)

// caOf is the certificate of a test server in PEM.
func caOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func ExampleHook_Post() {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "asked to answer within %s", r.FormValue("timeout"))
	}))
	defer server.Close()
	client := webhook.NewClient(webhook.Options{})
	defer client.Close()

	hook, err := client.Hook(webhook.Config{URL: &server.URL, CABundle: caOf(server)})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := hook.Post(context.Background(), webhook.Call{Body: []byte(`{}`)})
	fmt.Println(string(answer), err)
	// Output: asked to answer within 30s <nil>
}

func ExampleClient_Hook() {
	client := webhook.NewClient(webhook.Options{})
	defer client.Close()
	plain := "http://example.com/convert"
	_, err := client.Hook(webhook.Config{URL: &plain})
	fmt.Println(err)
	// Output: invalid webhook configuration: url "http://example.com/convert": 'https' is the only allowed URL scheme; desired format: https://host[/path]
}

func ExampleConverter() {
	// The webhook moves spec.size of v1 to spec.metres of v2.
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		json.NewDecoder(r.Body).Decode(&review)
		answer := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: "Success"}}
		for _, raw := range review.Request.Objects {
			var obj unstructured.Unstructured
			json.Unmarshal(raw.Raw, &obj)
			obj.SetAPIVersion(review.Request.DesiredAPIVersion)
			size, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size")
			obj.Object["spec"] = map[string]any{"metres": size}
			answer.ConvertedObjects = append(answer.ConvertedObjects, runtime.RawExtension{Object: &obj})
		}
		review.Request, review.Response = nil, answer
		json.NewEncoder(w).Encode(review)
	}))
	defer server.Close()
	client := webhook.NewClient(webhook.Options{})
	defer client.Close()

	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boats.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:    "example.com",
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2"}},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ConversionReviewVersions: []string{"v1"},
					ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &server.URL, CABundle: caOf(server)},
				},
			},
		},
	}
	converter, err := webhook.NewConverter(crd, client)
	if err != nil {
		fmt.Println(err)
		return
	}
	boat := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Boat",
		"metadata": map[string]any{"name": "skiff"},
		"spec":     map[string]any{"size": int64(4)},
	}}
	got, err := converter.Convert(context.Background(), []*unstructured.Unstructured{boat}, schema.GroupVersion{Group: "example.com", Version: "v2"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(got[0].GetAPIVersion(), got[0].GetName(), got[0].Object["spec"])
	// Output: example.com/v2 skiff map[metres:4]
}
