package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/webhook"
)

var v1, v2 = schema.GroupVersion{Group: "example.com", Version: "v1"}, schema.GroupVersion{Group: "example.com", Version: "v2"}

// boats is a definition with the versions v1 and v2, converted by nobody.
func boats() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boats.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:      "example.com",
			Names:      apiextensionsv1.CustomResourceDefinitionNames{Kind: "Boat", ListKind: "BoatList"},
			Versions:   []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2"}},
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter},
		},
	}
}

// boatsBy is boats, converted by a webhook that is asked in the given versions.
func boatsBy(cfg webhook.Config, reviews ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := boats()
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL: cfg.URL, Service: (*apiextensionsv1.ServiceReference)(cfg.Service), CABundle: cfg.CABundle,
			},
			ConversionReviewVersions: reviews,
		},
	}
	return crd
}

func newConverter(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) *webhook.Converter {
	t.Helper()
	c, err := webhook.NewConverter(crd, newClient(t, webhook.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func boat(gv schema.GroupVersion, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gv.String(), "kind": "Boat",
		"metadata": map[string]any{
			"name": name, "namespace": "harbour", "uid": "uid-of-" + name, "resourceVersion": "7", "generation": int64(3),
			"labels": map[string]any{"a": "1"}, "annotations": map[string]any{"note": "x"}, "finalizers": []any{"example.com/f"},
		},
		"spec": map[string]any{"length": int64(9007199254740993), "width": 1.5},
	}}
}

// review is a ConversionReview as JSON.
type review struct {
	APIVersion string         `json:"apiVersion,omitempty"`
	Kind       string         `json:"kind,omitempty"`
	Request    *request       `json:"request,omitempty"`
	Response   map[string]any `json:"response,omitempty"`
}

type request struct {
	UID               string           `json:"uid"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

// convert is what a good webhook answers.
func convert(in review) review {
	for _, obj := range in.Request.Objects {
		obj["apiVersion"] = in.Request.DesiredAPIVersion
	}
	return review{APIVersion: in.APIVersion, Kind: in.Kind, Response: map[string]any{
		"uid": in.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": in.Request.Objects,
	}}
}

// answering is a webhook that answers what edit makes of a good answer.
func answering(edit func(in review, out *review)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in review
		d := json.NewDecoder(r.Body)
		d.UseNumber()
		if err := d.Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := convert(in)
		edit(in, &out)
		json.NewEncoder(w).Encode(out)
	}
}

func TestWebhookConverts(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			var asked []review
			s := startServer(t, serverOptions{}, answering(func(in review, out *review) {
				asked = append(asked, in)
				for _, obj := range in.Request.Objects {
					obj["spec"].(map[string]any)["converted"] = true
				}
			}))
			c := newConverter(t, boatsBy(s.config("/convert"), "v3", version, "v1", "v1beta1"))
			objs := []*unstructured.Unstructured{boat(v1, "a"), boat(v2, "b"), boat(v1, "c")}
			got, err := c.Convert(t.Context(), objs, v2)
			if err != nil {
				t.Fatal(err)
			}

			if len(asked) != 1 || len(asked[0].Request.Objects) != 2 {
				t.Fatalf("asked %v, not once about two", asked)
			}
			in := asked[0]
			if in.APIVersion != "apiextensions.k8s.io/"+version || in.Kind != "ConversionReview" || in.Request.DesiredAPIVersion != "example.com/v2" || len(in.Request.UID) != 36 {
				t.Errorf("asked %+v", in)
			}
			want := []*unstructured.Unstructured{boat(v2, "a"), boat(v2, "b"), boat(v2, "c")}
			for _, i := range []int{0, 2} {
				want[i].Object["spec"].(map[string]any)["converted"] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if got[1] != objs[1] {
				t.Error("an object of the right version was copied")
			}
			if diff := cmp.Diff([]*unstructured.Unstructured{boat(v1, "a"), boat(v2, "b"), boat(v1, "c")}, objs); diff != "" {
				t.Error("the originals have changed: " + diff)
			}
		})
	}
}

// Webhooks are written against kube-apiserver, which sends an empty response too.
func TestRequestIsAsOfKubeAPIServer(t *testing.T) {
	var body []byte
	s := startServer(t, serverOptions{}, func(_ http.ResponseWriter, r *http.Request) { body, _ = io.ReadAll(r.Body) })
	newConverter(t, boatsBy(s.config(""), "v1")).Convert(t.Context(), []*unstructured.Unstructured{boat(v1, "a")}, v2)
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"uid": "", "convertedObjects": nil, "result": map[string]any{"metadata": map[string]any{}}}
	if diff := cmp.Diff(want, got["response"]); diff != "" {
		t.Error(diff)
	}
}

func TestNobodyIsAskedWithoutNeed(t *testing.T) {
	s := startServer(t, serverOptions{}, func(http.ResponseWriter, *http.Request) { t.Error("the webhook was asked") })
	c := newConverter(t, boatsBy(s.config(""), "v1"))
	empty := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Boat"}}
	got, err := c.Convert(t.Context(), []*unstructured.Unstructured{empty, boat(v2, "b")}, v2)
	if err != nil || got[0].GetAPIVersion() != "example.com/v2" || empty.GetAPIVersion() != "example.com/v1" {
		t.Errorf("got %v, %v of %v", got, err, empty)
	}
	if got, err := c.Convert(t.Context(), nil, v2); len(got) != 0 || err != nil {
		t.Errorf("got %v, %v of nothing", got, err)
	}
}

func TestStrategyNoneChangesTheVersionOnly(t *testing.T) {
	none, unset := boats(), boats()
	unset.Spec.Conversion = nil
	for name, crd := range map[string]*apiextensionsv1.CustomResourceDefinition{"None": none, "unset": unset} {
		t.Run(name, func(t *testing.T) {
			c, err := webhook.NewConverter(crd, nil)
			if err != nil {
				t.Fatal(err)
			}
			objs := []*unstructured.Unstructured{boat(v1, "a"), boat(v2, "b")}
			got, err := c.Convert(t.Context(), objs, v2)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]*unstructured.Unstructured{boat(v2, "a"), boat(v2, "b")}, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(boat(v1, "a"), objs[0]); diff != "" {
				t.Error("the original has changed: " + diff)
			}
		})
	}
}

func TestUnknownVersionsAreRefused(t *testing.T) {
	c := newConverter(t, boats())
	v9 := schema.GroupVersion{Group: "example.com", Version: "v9"}
	tests := map[string]struct {
		objs []*unstructured.Unstructured
		to   schema.GroupVersion
		want string
	}{
		"to":      {nil, v9, "CRD boats.example.com: request to convert CR to an invalid group/version: example.com/v9"},
		"from":    {[]*unstructured.Unstructured{boat(v9, "a")}, v1, "CRD boats.example.com: request to convert CR from an invalid group/version: example.com/v9"},
		"in list": {[]*unstructured.Unstructured{boat(v1, "a"), boat(v9, "b")}, v1, "CRD boats.example.com: request to convert CR list failed, list index 1 has invalid group/version: example.com/v9"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := c.Convert(t.Context(), test.objs, test.to); err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %v", err, test.want)
			}
		})
	}
}

// object returns an object of an answer.
func object(out *review, i int) map[string]any {
	return out.Response["convertedObjects"].([]map[string]any)[i]
}

func metadata(out *review, i int) map[string]any { return object(out, i)["metadata"].(map[string]any) }

func TestWrongAnswersAreRefused(t *testing.T) {
	tests := map[string]struct {
		edit func(in review, out *review)
		// single is about one boat, list about two; in both the first is wrong.
		single, list string
	}{
		"other version of the review": {
			func(_ review, out *review) { out.APIVersion = "apiextensions.k8s.io/v1beta1" },
			"failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1beta1, Kind=ConversionReview", ""},
		"no kind": {
			func(_ review, out *review) { out.APIVersion, out.Kind = "", "" },
			"failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=", ""},
		"no response": {
			func(_ review, out *review) { out.Response = nil }, "failed: no response provided", ""},
		"failure with a message": {
			func(_ review, out *review) {
				out.Response["result"] = map[string]any{"status": "Failure", "message": "it leaks"}
			},
			"failed: it leaks", ""},
		"failure without a message": {
			func(_ review, out *review) { out.Response["result"] = map[string]any{"status": "Failure"} },
			"failed: response.result.status was 'Failure', not 'Success'", ""},
		"no result": {
			func(_ review, out *review) { delete(out.Response, "result") },
			"failed: response.result.status was '', not 'Success'", ""},
		"no objects": {
			func(_ review, out *review) { delete(out.Response, "convertedObjects") },
			"returned 0 objects, expected 1", "returned 0 objects, expected 2"},
		"too many objects": {
			func(_ review, out *review) {
				all := out.Response["convertedObjects"].([]map[string]any)
				out.Response["convertedObjects"] = append(all, all...)
			},
			"returned 2 objects, expected 1", "returned 4 objects, expected 2"},
		"null": {
			func(_ review, out *review) {
				out.Response["convertedObjects"].([]map[string]any)[0] = nil
			},
			"returned invalid object at index 0: unexpected end of JSON input", "returned invalid converted object at index 0: unexpected end of JSON input"},
		"old version": {
			func(_ review, out *review) { object(out, 0)["apiVersion"] = "example.com/v1" },
			"returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)",
			"returned invalid converted object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)"},
		"other kind": {
			func(_ review, out *review) { object(out, 0)["kind"] = "Ship" },
			"returned invalid object at index 0: invalid kind (expected Boat, received Ship)",
			"returned invalid converted object at index 0: invalid kind (expected Boat, received Ship)"},
		"other name": {
			func(_ review, out *review) { metadata(out, 0)["name"] = "z" },
			"returned invalid object: must have the same name: a != z",
			"returned invalid converted object at index 0: must have the same name: a != z"},
		"other namespace": {
			func(_ review, out *review) { delete(metadata(out, 0), "namespace") },
			"returned invalid object: must have the same namespace: harbour != ",
			"returned invalid converted object at index 0: must have the same namespace: harbour != "},
		"other uid": {
			func(_ review, out *review) { metadata(out, 0)["uid"] = "u" },
			"returned invalid object: must have the same UID: uid-of-a != u",
			"returned invalid converted object at index 0: must have the same UID: uid-of-a != u"},
		"labels that are no map": {
			func(_ review, out *review) { metadata(out, 0)["labels"] = "a=b" },
			"returned invalid metadata: invalid metadata.labels of type string in converted object",
			"returned invalid metadata in object at index 0: invalid metadata.labels of type string in converted object"},
		"label that is no string": {
			func(_ review, out *review) { metadata(out, 0)["labels"] = map[string]any{"a": 1} },
			"returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
			"returned invalid metadata in object at index 0: metadata.labels[a] must be a string, but is int64 in converted object"},
		"invalid label": {
			func(_ review, out *review) { metadata(out, 0)["labels"] = map[string]any{"a": "no good"} },
			`returned invalid metadata: metadata.labels: Invalid value: "no good": a valid label must be an empty string or consist of alphanumeric characters`,
			`returned invalid metadata in object at index 0: metadata.labels: Invalid value: "no good": a valid label must be`},
		"invalid annotation": {
			func(_ review, out *review) { metadata(out, 0)["annotations"] = map[string]any{"no good": "x"} },
			`returned invalid metadata: metadata.annotation: Invalid value: "no good": name part must consist of`,
			`returned invalid metadata in object at index 0: metadata.annotation: Invalid value: "no good": name part must consist of`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, serverOptions{}, answering(test.edit))
			c := newConverter(t, boatsBy(s.config("/convert"), "v1"))
			if test.list == "" {
				test.list = test.single
			}
			// The first of the list needs no conversion and does not count.
			list := []*unstructured.Unstructured{boat(v2, "x"), boat(v1, "a"), boat(v1, "b")}
			_, err := c.Convert(t.Context(), list, v2)
			expectBlame(t, err, "conversion webhook for example.com/v2, Kind=BoatList "+test.list, s.URL)
			_, err = c.Convert(t.Context(), list[1:2], v2)
			expectBlame(t, err, "conversion webhook for example.com/v1, Kind=Boat "+test.single, s.URL)
		})
	}
}

// expectBlame expects the start of an error, and the webhook at its end.
func expectBlame(t *testing.T, err error, want, url string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), " ("+url+"/convert)") {
		t.Errorf("got  %v\nwant %v ... (%s/convert)", err, want, url)
	}
}

func TestAnswerToAnotherRequestIsRefused(t *testing.T) {
	var uid string
	s := startServer(t, serverOptions{}, answering(func(in review, out *review) {
		uid = in.Request.UID
		out.Response["uid"] = "stale"
	}))
	_, err := newConverter(t, boatsBy(s.config("/convert"), "v1")).Convert(t.Context(), []*unstructured.Unstructured{boat(v1, "a")}, v2)
	expectBlame(t, err, fmt.Sprintf("conversion webhook for example.com/v1, Kind=Boat failed: expected response.uid=%q, got %q (", uid, "stale"), s.URL)
}

// v1beta1 never asked for these, and old webhooks do not send them.
func TestOldReviewNeedRepeatNeitherKindNorUID(t *testing.T) {
	s := startServer(t, serverOptions{}, answering(func(_ review, out *review) {
		out.APIVersion, out.Kind = "", ""
		delete(out.Response, "uid")
	}))
	if _, err := newConverter(t, boatsBy(s.config(""), "v1beta1")).Convert(t.Context(), []*unstructured.Unstructured{boat(v1, "a")}, v2); err != nil {
		t.Error(err)
	}
}

func TestMetadataIsNotTheWebhooksButForLabelsAndAnnotations(t *testing.T) {
	s := startServer(t, serverOptions{}, answering(func(_ review, out *review) {
		m := metadata(out, 0)
		m["resourceVersion"], m["generation"], m["deletionTimestamp"] = "99", 99, "2020-01-01T00:00:00Z"
		delete(m, "finalizers")
		m["ownerReferences"] = []any{map[string]any{"name": "thief"}}
		m["labels"] = map[string]any{"a": "1", "b": "2"}
		delete(m, "annotations")
	}))
	original := boat(v1, "a")
	got, err := newConverter(t, boatsBy(s.config(""), "v1")).Convert(t.Context(), []*unstructured.Unstructured{original}, v2)
	if err != nil {
		t.Fatal(err)
	}
	want := boat(v2, "a")
	want.SetLabels(map[string]string{"a": "1", "b": "2"})
	want.SetAnnotations(nil)
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	got[0].Object["metadata"].(map[string]any)["finalizers"].([]any)[0] = "changed"
	if diff := cmp.Diff(boat(v1, "a"), original); diff != "" {
		t.Error("the original has changed: " + diff)
	}
}

// Labels that older rules let in must not make an object unreadable.
func TestUnchangedLabelsAreNotCheckedAgain(t *testing.T) {
	s := startServer(t, serverOptions{}, answering(func(review, *review) {}))
	old := boat(v1, "a")
	old.SetLabels(map[string]string{"not valid": "at all"})
	if _, err := newConverter(t, boatsBy(s.config(""), "v1")).Convert(t.Context(), []*unstructured.Unstructured{old}, v2); err != nil {
		t.Error(err)
	}
}

func TestFailedCallsNameKindAndWebhook(t *testing.T) {
	tests := map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"500": {
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "sunk", 500) },
			`Post "%s/convert?timeout=30s": the webhook answered 500 Internal Server Error: an error on the server ("sunk") has prevented the request from succeeding`},
		"redirect": {
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://elsewhere", http.StatusFound)
			},
			`Post "%s/convert?timeout=30s": the webhook answered 302 Found: redirects are not followed, here to "https://elsewhere"`},
		"huge": {
			func(w http.ResponseWriter, _ *http.Request) { endless(w) },
			`Post "%s/convert?timeout=30s": the webhook's answer is too large: at most `},
		"no JSON": {
			func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
			`couldn't get version/kind; json parse error: invalid character '<' looking for beginning of value (%s/convert)`},
		"nothing": {
			func(http.ResponseWriter, *http.Request) {},
			`couldn't get version/kind; json parse error: unexpected end of JSON input (%s/convert)`},
		"other JSON": {
			func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "[]") },
			`couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type v1.ConversionReview (%s/convert)`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, serverOptions{}, test.answer)
			_, err := newConverter(t, boatsBy(s.config("/convert"), "v1")).Convert(t.Context(), []*unstructured.Unstructured{boat(v1, "a")}, v2)
			want := "conversion webhook for example.com/v1, Kind=Boat failed: " + fmt.Sprintf(test.want, s.URL)
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got  %v\nwant %v", err, want)
			}
		})
	}
}

func TestConversionEndsWithItsContext(t *testing.T) {
	entered := make(chan struct{})
	s := startServer(t, serverOptions{}, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	_, err := newConverter(t, boatsBy(s.config("/convert"), "v1")).Convert(ctx, []*unstructured.Unstructured{boat(v1, "a")}, v2)
	want := fmt.Sprintf(`conversion webhook for example.com/v1, Kind=Boat failed: Post "%s/convert?timeout=30s": context canceled`, s.URL)
	if err == nil || err.Error() != want || !errors.Is(err, context.Canceled) {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

func TestSlowConversionTakesThirtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		client := webhook.NewClient(webhook.Options{Resolver: resolverFunc(func(ctx context.Context, _, _ string, _ int32) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})})
		crd := boatsBy(webhook.Config{Service: &webhook.Service{Namespace: "system", Name: "hook"}, CABundle: ca.pem}, "v1")
		c, err := webhook.NewConverter(crd, client)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Convert(t.Context(), []*unstructured.Unstructured{boat(v1, "a")}, v2)
		want := `conversion webhook for example.com/v1, Kind=Boat failed: Post "https://hook.system.svc:443/?timeout=30s": no answer within 30s: context deadline exceeded`
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %v", err, want)
		}
	})
}

func TestDefinitionsThatCannotBeConverted(t *testing.T) {
	http, https := "http://h/p", "https://h/p"
	strategy, bare := boats(), boats()
	strategy.Spec.Conversion.Strategy = "Magic"
	bare.Spec.Conversion.Strategy = apiextensionsv1.WebhookConverter
	tests := map[string]struct {
		crd  *apiextensionsv1.CustomResourceDefinition
		want string
	}{
		"strategy":  {strategy, `invalid webhook configuration: unknown conversion strategy "Magic" for CRD boats.example.com`},
		"nothing":   {bare, "conversion webhook for CRD boats.example.com: invalid webhook configuration: no client configuration"},
		"no review": {boatsBy(webhook.Config{URL: &https}, "v2"), "conversion webhook for CRD boats.example.com: invalid webhook configuration: no supported conversion review versions"},
		"http": {boatsBy(webhook.Config{URL: &http}, "v1"), "conversion webhook for CRD boats.example.com: invalid webhook configuration: " +
			`url "http://h/p": 'https' is the only allowed URL scheme; desired format: https://host[/path]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := webhook.NewConverter(test.crd, newClient(t, webhook.Options{}))
			if err == nil || err.Error() != test.want || !errors.Is(err, webhook.ErrConfig) {
				t.Errorf("got  %v\nwant %v", err, test.want)
			}
		})
	}
	if _, err := webhook.NewConverter(boatsBy(webhook.Config{URL: &https}, "v1"), nil); err == nil {
		t.Error("a webhook is called without a client")
	}
}
