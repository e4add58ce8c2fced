package webhook_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/webhook"
)

// conversion is the answer to a ConversionReview.
type conversion struct {
	UID              string        `json:"uid"`
	ConvertedObjects []any         `json:"convertedObjects"`
	Result           metav1.Status `json:"result"`
}

// convert asks for objects in a version.
func convert(t *testing.T, s *webhook.Server, to string, objects ...string) conversion {
	t.Helper()
	body := `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"` + to +
		`","objects":[` + strings.Join(objects, ",") + `]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}`
	code, text := serve(t, s, "/convert", []byte(body))
	var out struct {
		metav1.TypeMeta
		Response conversion
	}
	if err := json.Unmarshal(text, &out); err != nil || code != http.StatusOK || out.Kind != "ConversionReview" || out.Response.UID != "u" {
		t.Fatalf("%d %s", code, text)
	}
	return out.Response
}

func boatServer(t *testing.T) *webhook.Server {
	t.Helper()
	return webhook.New(offline(t), webhook.Options{Unregistered: true, Logger: quiet}, conversions())
}

func TestObjectsAreConverted(t *testing.T) {
	tests := map[string]struct{ to, object, want string }{
		"up": {"example.com/v1",
			`{"apiVersion":"example.com/v1beta1","kind":"Boat","metadata":{"name":"n"},"spec":{"metres":2}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"n"},"spec":{"centimetres":200}}`},
		"down": {"example.com/v1beta1",
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"n"},"spec":{"centimetres":200}}`,
			`{"apiVersion":"example.com/v1beta1","kind":"Boat","metadata":{"name":"n"},"spec":{"metres":2}}`},
		"by way of the hub": {"example.com/v1alpha1",
			`{"apiVersion":"example.com/v1beta1","kind":"Boat","metadata":{"name":"n"},"spec":{"metres":3}}`,
			`{"apiVersion":"example.com/v1alpha1","kind":"Boat","metadata":{"name":"n"},"spec":{"feet":10}}`},
		"not at all": {"example.com/v1beta1",
			`{"apiVersion":"example.com/v1beta1","kind":"Boat","metadata":{"name":"n"},"spec":{"metres":3,"crew":"no list"}}`,
			`{"apiVersion":"example.com/v1beta1","kind":"Boat","metadata":{"name":"n"},"spec":{"metres":3,"crew":"no list"}}`},
		"unknown fields stay, of whatever value": {"example.com/v1beta1",
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"n"},"top":null,"spec":{"no":false,"big":12345678901234567890,"crew":[{"name":"a","x":0},{"name":"b","rank":""}]}}`,
			`{"apiVersion":"example.com/v1beta1","kind":"Boat","metadata":{"name":"n"},"top":null,"spec":{"no":false,"big":12345678901234567890,"crew":[{"name":"a","x":0},{"name":"b"}]}}`},
		"known fields do not stay": {"example.com/v1beta1",
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"n"},"spec":{"centimetres":0}}`,
			`{"apiVersion":"example.com/v1beta1","kind":"Boat","metadata":{"name":"n"},"spec":{}}`},
		"unknown fields do not displace others": {"example.com/v1beta1",
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"n"},"spec":{"centimetres":100,"metres":7}}`,
			`{"apiVersion":"example.com/v1beta1","kind":"Boat","metadata":{"name":"n"},"spec":{"metres":1}}`},
		"metadata stays, but for labels and annotations": {"example.com/v1alpha1",
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"n","finalizers":["f"],"future":{"a":1},"annotations":{"b":"c"}},"spec":{"crew":[{"name":"a"}]}}`,
			`{"apiVersion":"example.com/v1alpha1","kind":"Boat","metadata":{"name":"n","finalizers":["f"],"future":{"a":1},"annotations":{"b":"c","example.com/crew":"[{\"name\":\"a\"}]"}},"spec":{"names":["a"]}}`},
		"the last annotation goes": {"example.com/v1",
			`{"apiVersion":"example.com/v1alpha1","kind":"Boat","metadata":{"name":"n","annotations":{"example.com/crew":"[]"}},"spec":{}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"n"},"spec":{}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := convert(t, boatServer(t), test.to, test.object)
			var want any
			if err := json.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{want}, got.ConvertedObjects); diff != "" || got.Result.Status != metav1.StatusSuccess {
				t.Errorf("%+v: %s", got.Result, diff)
			}
		})
	}
}

func TestAllObjectsAreConvertedOrNone(t *testing.T) {
	const good = `{"apiVersion":"example.com/v1alpha1","kind":"Boat","metadata":{"namespace":"d","name":"good"},"spec":{"feet":1}}`
	list := make([]string, 1000)
	for i := range list {
		list[i] = good
	}
	if got := convert(t, boatServer(t), "example.com/v1", list...); len(got.ConvertedObjects) != 1000 || got.Result.Status != metav1.StatusSuccess {
		t.Errorf("%d, %+v", len(got.ConvertedObjects), got.Result)
	}
	tests := map[string]struct{ to, object, want string }{
		"the function fails": {"example.com/v1", `{"apiVersion":"example.com/v1alpha1","kind":"Boat","metadata":{"namespace":"d","name":"bad"},"spec":{"feet":-1}}`,
			"convert Boat d/bad from example.com/v1alpha1 to example.com/v1: a boat of less than nothing"},
		"a wrong type": {"example.com/v1", `{"apiVersion":"example.com/v1alpha1","kind":"Boat","metadata":{"namespace":"d","name":"bad"},"spec":[]}`,
			"convert Boat d/bad from example.com/v1alpha1 to example.com/v1: decode a *webhook_test.AlphaBoat: json: cannot unmarshal array"},
		"no metadata": {"example.com/v1", `{"apiVersion":"example.com/v1alpha1","kind":"Boat"}`, "the object has no metadata"},
		"an unknown version": {"example.com/v1", `{"apiVersion":"example.com/v0","kind":"Boat","metadata":{"name":"bad"}}`,
			"from example.com/v0 to example.com/v1: a version is not known"},
		"another kind":        {"example.com/v1", `{"apiVersion":"example.com/v1","kind":"Ship","metadata":{}}`, "object 1: example.com/v1, Kind=Ship has no conversion here"},
		"to an unknown group": {"example.org/v1", good, "a version is not known"},
		"to nonsense":         {"a/b/c", good, "unexpected GroupVersion string: a/b/c"},
		"no object":           {"example.com/v1", `1`, "object 1: json: cannot unmarshal number"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := convert(t, boatServer(t), test.to, good, test.object)
			if got.ConvertedObjects != nil || got.Result.Status != metav1.StatusFailure || !strings.Contains(got.Result.Message, test.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestWrongHooksAreErrors(t *testing.T) {
	nothing := func(*Boat, *Boat) error { return nil }
	tests := map[string]struct {
		options webhook.Options
		hooks   []webhook.Hook
		want    string
	}{
		"no name":             {webhook.Options{}, nil, "there is no name to register under"},
		"half a certificate":  {webhook.Options{Name: "n", CertFile: "f"}, nil, "a certificate needs a key"},
		"the hub as a spoke":  {webhook.Options{Name: "n"}, []webhook.Hook{webhook.Convert(webhook.Version(nothing, nothing))}, "is no further version of"},
		"two conversions":     {webhook.Options{Name: "n"}, []webhook.Hook{conversions(), conversions()}, "two conversions of Boat.example.com"},
		"two of a kind":       {webhook.Options{Name: "n"}, []webhook.Hook{webhook.Mutate(mutateBoat), webhook.Mutate(mutateBoat)}, "two webhooks that mutate example.com/v1, Kind=Boat"},
		"an unknown type":     {webhook.Options{Name: "n"}, []webhook.Hook{webhook.Mutate[*metav1.PartialObjectMetadata](nil)}, "the kind of the type is not known"},
		"everywhere":          {webhook.Options{Name: "n", Listen: "0.0.0.0:0"}, nil, "a Service or a URL is needed"},
		"a URL without TLS":   {webhook.Options{Name: "n", URL: "http://127.0.0.1"}, nil, "is no URL of a webhook"},
		"nowhere":             {webhook.Options{Name: "n", Listen: "127.0.0.1:x"}, nil, "listen for webhooks"},
		"versions of another": {webhook.Options{Name: "n"}, []webhook.Hook{webhook.Convert(webhook.Version(func(*corev1.Pod, *Boat) error { return nil }, nil))}, "is no further version of"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.options.Logger = quiet
			err := webhook.New(offline(t), test.options, test.hooks...).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || name != "nowhere" && !errors.Is(err, webhook.ErrOptions) {
				t.Error(err)
			}
		})
	}
}
