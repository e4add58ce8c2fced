package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/webhook"
)

// recorded is a review as kube-apiserver 1.36 has sent it.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/reviews/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// serveBoats runs a webhook of boats at a server that knows them, and returns a caller
// that knows no more than what was registered.
func serveBoats(t *testing.T, env *evenkeeltest.Env, name string, h webhook.Hook) *caller {
	t.Helper()
	run(t, webhook.New(env.Conn(), webhook.Options{Name: name, Logger: quiet}, h))
	return validatingCallerOf(t, env.Conn(), name)
}

func startWithBoats(t *testing.T) *evenkeeltest.Env {
	t.Helper()
	env := evenkeeltest.Start(t)
	applyDefinition(t, env.Conn())
	return env
}

func TestAFunctionSeesTheWholeRequest(t *testing.T) {
	env := startWithBoats(t)
	tests := map[string]func(r *webhook.Request[*Boat]) bool{
		"boat-create": func(r *webhook.Request[*Boat]) bool {
			return r.Operation == admissionv1.Create && r.Old == nil && r.Object.Spec.Crew[0].Name == "ann"
		},
		"boat-update": func(r *webhook.Request[*Boat]) bool {
			return r.Operation == admissionv1.Update && r.Old.Spec.Centimetres == 0 && r.Object.Spec.Centimetres == 100
		},
		"boat-delete": func(r *webhook.Request[*Boat]) bool {
			return r.Operation == admissionv1.Delete && r.Object == nil && r.Old.Spec.Centimetres == 100
		},
	}
	for name, right := range tests {
		t.Run(name, func(t *testing.T) {
			var seen *webhook.Request[*Boat]
			c := serveBoats(t, env, name, webhook.Validate(func(ctx context.Context, r *webhook.Request[*Boat]) error {
				if _, bounded := ctx.Deadline(); !bounded {
					t.Error("the context does not end")
				}
				seen = r
				return nil
			}))
			if answer := c.review(t, recorded(t, name)); !answer.Allowed || answer.Patch != nil || answer.Result != nil {
				t.Errorf("%+v", answer)
			}
			if seen.UserInfo.Username != "kubernetes-admin" || seen.Name != "dinghy" || seen.DryRun() || !right(seen) {
				t.Errorf("%+v", seen)
			}
		})
	}
}

func TestAPodIsChangedAsItWasSent(t *testing.T) {
	env := evenkeeltest.Start(t)
	run(t, webhook.New(env.Conn(), webhook.Options{Name: "pods", Logger: quiet},
		webhook.Mutate(func(_ context.Context, r *webhook.Request[*corev1.Pod]) error {
			if !r.DryRun() {
				t.Error("it is a dry run")
			}
			metav1.SetMetaDataLabel(&r.Object.ObjectMeta, "a", "b")
			r.Object.Spec.Containers[0].Image = "proxy/" + r.Object.Spec.Containers[0].Image
			r.Object.Spec.Containers = append(r.Object.Spec.Containers, corev1.Container{Name: "sidecar", Image: "s"})
			return nil
		})))
	body := recorded(t, "pod-create")
	// What a newer API server might say of a container.
	body = []byte(strings.Replace(string(body), `"name":"c",`, `"name":"c","checkpoint":{"every":"1h","atOnce":false},`, 1))
	answer := callerOf(t, env.Conn(), "pods").review(t, body)
	if !answer.Allowed || *answer.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Errorf("%+v", answer)
	}
	want := `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}},` +
		`{"op":"replace","path":"/spec/containers","value":[` +
		`{"checkpoint":{"atOnce":false,"every":"1h"},"image":"proxy/i","imagePullPolicy":"Always","name":"c","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"},` +
		`{"image":"s","name":"sidecar","resources":{}}]}]`
	if diff := cmp.Diff(want, string(answer.Patch)); diff != "" {
		t.Error(diff)
	}
}

func TestAMutationThatChangesNothingHasNoPatch(t *testing.T) {
	env := evenkeeltest.Start(t)
	run(t, webhook.New(env.Conn(), webhook.Options{Name: "pods", Logger: quiet},
		webhook.Mutate(func(context.Context, *webhook.Request[*corev1.Pod]) error { return nil })))
	if answer := callerOf(t, env.Conn(), "pods").review(t, recorded(t, "pod-create")); !answer.Allowed || answer.Patch != nil || answer.PatchType != nil {
		t.Errorf("%+v", answer)
	}
}

func TestObjectsWithoutAGoTypeAreChanged(t *testing.T) {
	env := startWithBoats(t)
	run(t, webhook.New(env.Conn(), webhook.Options{Name: "boats", Logger: quiet},
		webhook.Mutate(func(_ context.Context, r *webhook.Request[*unstructured.Unstructured]) error {
			return unstructured.SetNestedField(r.Object.Object, "x", "spec", "unknown", "y")
		}, webhook.Kind(boatKind("v1")))))
	answer := callerOf(t, env.Conn(), "boats").review(t, recorded(t, "boat-create"))
	if want := `[{"op":"add","path":"/spec/unknown/y","value":"x"}]`; string(answer.Patch) != want {
		t.Errorf("%s, want %s", answer.Patch, want)
	}
}

func TestRefusalsSayWhy(t *testing.T) {
	env := startWithBoats(t)
	kind := schema.GroupResource{Group: "example.com", Resource: "boats"}
	tests := map[string]struct {
		err  func(r *webhook.Request[*Boat]) error
		want metav1.Status
	}{
		"an error": {
			func(*webhook.Request[*Boat]) error { return errors.New("boats have no wheels") },
			metav1.Status{Code: 403, Reason: "Forbidden", Message: "boats have no wheels"}},
		"an error of the API": {
			func(*webhook.Request[*Boat]) error { return apierrors.NewTooManyRequests("later", 3) },
			metav1.Status{Code: 429, Reason: "TooManyRequests", Message: "later", Details: &metav1.StatusDetails{RetryAfterSeconds: 3}}},
		"an error of the API in another": {
			func(*webhook.Request[*Boat]) error {
				return fmt.Errorf("find the harbour: %w", apierrors.NewNotFound(kind, "h"))
			},
			metav1.Status{Code: 404, Reason: "NotFound", Message: `find the harbour: boats.example.com "h" not found`,
				Details: &metav1.StatusDetails{Group: "example.com", Kind: "boats", Name: "h"}}},
		"wrong fields": {
			func(r *webhook.Request[*Boat]) error {
				return r.Invalid(field.ErrorList{field.Required(field.NewPath("spec", "mast"), "boats sail")})
			},
			metav1.Status{Code: 422, Reason: "Invalid", Message: `Boat.example.com "dinghy" is invalid: spec.mast: Required value: boats sail`,
				Details: &metav1.StatusDetails{Group: "example.com", Kind: "Boat", Name: "dinghy",
					Causes: []metav1.StatusCause{{Type: "FieldValueRequired", Message: "Required value: boats sail", Field: "spec.mast"}}}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := serveBoats(t, env, strings.ReplaceAll(strings.ToLower(name), " ", "-"), webhook.Validate(func(_ context.Context, r *webhook.Request[*Boat]) error {
				r.Warn("%d warnings", 1)
				r.Audit("key", "value")
				return test.err(r)
			}))
			test.want.Status = metav1.StatusFailure
			want := &admissionv1.AdmissionResponse{Warnings: []string{"1 warnings"}, AuditAnnotations: map[string]string{"key": "value"}, Result: &test.want}
			got := c.review(t, recorded(t, "boat-create"))
			got.UID = ""
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoWrongFieldsAreNoError(t *testing.T) {
	if err := new(webhook.Request[*Boat]).Invalid(nil); err != nil {
		t.Error(err)
	}
}

// What is no answer is left to the failure policy: API servers look at the code.
func TestWhatIsNoAnswerIsAFailure(t *testing.T) {
	env := startWithBoats(t)
	create := string(recorded(t, "boat-create"))
	tests := map[string]struct {
		f    func(r *webhook.Request[*Boat]) error
		body string
		code int
		text string
	}{
		"undecided":      {func(*webhook.Request[*Boat]) error { return webhook.Undecided(errors.New("no harbour")) }, create, 500, "no harbour"},
		"a panic":        {func(r *webhook.Request[*Boat]) error { return errors.New(r.Old.Name) }, create, 500, "panic: runtime error: invalid memory address"},
		"no JSON":        {nil, `{`, 400, "malformed review: unexpected end of JSON input"},
		"no review":      {nil, `{}`, 400, "malformed review: want a request in admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="},
		"another review": {nil, string(recorded(t, "boat-convert")), 400, "got apiextensions.k8s.io/v1, Kind=ConversionReview"},
		"an old review":  {nil, strings.Replace(create, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), 400, "got admission.k8s.io/v1beta1, Kind=AdmissionReview"},
		"no request":     {nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, 400, "want a request"},
		"another kind":   {nil, string(recorded(t, "pod-create")), 400, "this is the webhook of example.com/v1, Kind=Boat, not of /v1, Kind=Pod"},
		"another type":   {nil, strings.Replace(create, `"since":1999`, `"rank":1999`, 1), 400, "decode a *webhook_test.Boat: json: cannot unmarshal number"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := serveBoats(t, env, strings.ReplaceAll(strings.ToLower(name), " ", "-"), webhook.Validate(func(_ context.Context, r *webhook.Request[*Boat]) error {
				return test.f(r)
			}))
			resp, text := c.post(t, []byte(test.body))
			if resp.StatusCode != test.code || !strings.Contains(string(text), test.text) {
				t.Errorf("%s: %s", resp.Status, text)
			}
		})
	}
}

func TestAMutationToNothingIsAFailure(t *testing.T) {
	env := evenkeeltest.Start(t)
	run(t, webhook.New(env.Conn(), webhook.Options{Name: "pods", Logger: quiet},
		webhook.Mutate(func(_ context.Context, r *webhook.Request[*corev1.Pod]) error { r.Object = nil; return nil })))
	if resp, text := callerOf(t, env.Conn(), "pods").post(t, recorded(t, "pod-create")); resp.StatusCode != http.StatusInternalServerError {
		t.Errorf("%s: %s", resp.Status, text)
	}
}

// A review that can be read is answered, whatever else it says.
func FuzzReview(f *testing.F) {
	for _, name := range []string{"boat-create", "boat-update", "boat-delete", "boat-convert"} {
		f.Add(recorded(f, name))
	}
	f.Add([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","kind":{"group":"example.com","version":"v1","kind":"Boat"},"object":{"metadata":[],"spec":{"crew":[null,{}],"":1}}}}`))
	f.Add([]byte(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[null,1,{"apiVersion":"example.com/v1beta1","kind":"Boat","metadata":null}]}}`))
	mutate := webhook.Mutate(func(ctx context.Context, r *webhook.Request[*Boat]) error {
		if r.Object == nil {
			return errors.New("there is nothing to change")
		}
		return mutateBoat(ctx, r)
	})
	s := webhook.New(offline(f), webhook.Options{Name: "boats", Logger: quiet}, mutate, conversions())
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/mutate-example-com-v1-boat", "/convert"} {
			code, text := serve(t, s, path, body)
			if code == http.StatusBadRequest {
				continue
			}
			var out struct {
				Kind     string
				Response struct {
					Patch []byte
				}
			}
			if err := json.Unmarshal(text, &out); code != http.StatusOK || err != nil || !strings.HasSuffix(out.Kind, "Review") {
				t.Fatalf("%s: %d %s", path, code, text)
			}
			if len(out.Response.Patch) > 0 {
				checkPatch(t, body, out.Response.Patch)
			}
		}
	})
}

// checkPatch applies the patch of a mutation by mutateBoat.
func checkPatch(t *testing.T, body, patch []byte) {
	t.Helper()
	var in admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &in); err != nil {
		t.Skip("encoding/json is stricter:", err)
	}
	once := applyPatch(t, in.Request.Object.Raw, patch)
	var b Boat
	if err := json.Unmarshal(once, &b); err != nil {
		t.Skip("encoding/json is stricter:", err)
	}
	if b.Spec.Centimetres == 0 || !reflect.DeepEqual(b.Annotations["example.com/by"], in.Request.UserInfo.Username) {
		t.Errorf("%s and %s make %s", in.Request.Object.Raw, patch, once)
	}
}
