package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/test/peer"
	"github.com/even-keel/evenkeel/webhook"
)

// mutateBoat and validateBoat are an operator's.
func mutateBoat(_ context.Context, r *webhook.Request[*Boat]) error {
	if r.Object.Spec.Centimetres == 0 {
		r.Object.Spec.Centimetres = 300
	}
	for i := range r.Object.Spec.Crew {
		if r.Object.Spec.Crew[i].Rank == "" {
			r.Object.Spec.Crew[i].Rank = "mate"
		}
	}
	metav1.SetMetaDataAnnotation(&r.Object.ObjectMeta, "example.com/by", r.UserInfo.Username)
	return nil
}

func validateBoat(_ context.Context, r *webhook.Request[*Boat]) error {
	if r.Operation == admissionv1.Delete {
		if r.Old.Labels["keep"] != "" {
			return errors.New("the boat is kept")
		}
		return nil
	}
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if r.Object.Spec.Centimetres < 0 {
		errs = append(errs, field.Invalid(spec.Child("centimetres"), r.Object.Spec.Centimetres, "a boat has a length"))
	}
	if r.Old != nil && r.Object.Spec.Centimetres < r.Old.Spec.Centimetres {
		errs = append(errs, field.Forbidden(spec.Child("centimetres"), "boats do not shrink"))
	}
	if len(r.Object.Spec.Crew) == 0 {
		r.Warn("%s has no crew", r.Object.Name)
	}
	return r.Invalid(errs)
}

// applyDefinition makes the kind Boat.
func applyDefinition(t *testing.T, conn *client.Conn) {
	t.Helper()
	text, err := os.ReadFile("testdata/boats.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	definitions := client.Of[*unstructured.Unstructured](conn, client.Kind(kind))
	if _, err := definitions.Patch(t.Context(), client.Key{Name: "boats.example.com"}, client.ApplyPatch(text), client.FieldManager("test")); err != nil {
		t.Fatal(err)
	}
}

// boats is a client of a version that hides nothing.
func boats(conn *client.Conn, version string) *client.Client[*unstructured.Unstructured] {
	return client.Of[*unstructured.Unstructured](conn, client.Kind(boatKind(version))).In("default")
}

func boat(version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/" + version, "kind": "Boat",
		"metadata": map[string]any{"name": name, "namespace": "default", "finalizers": []any{"example.com/f"}, "labels": map[string]any{"a": "b"}},
		"spec":     spec,
	}}
}

func TestConversionOnOurServer(t *testing.T) {
	env := evenkeeltest.Start(t)
	applyDefinition(t, env.Conn())
	run(t, webhook.New(env.Conn(), webhook.Options{Name: "boats", Logger: quiet}, conversions()))
	checkConversion(t, env.Conn())
}

// checkConversion reads and writes boats in all versions. Nothing of it depends on
// whether there is admission.
func checkConversion(t *testing.T, conn *client.Conn) {
	t.Helper()
	ctx := t.Context()
	spec := map[string]any{
		"centimetres": int64(600), "unknown": map[string]any{"b": false, "n": int64(0)},
		"crew": []any{map[string]any{"name": "ann", "rank": "captain", "since": int64(1999)}, map[string]any{"name": "bob", "rank": "mate"}},
	}
	if _, err := boats(conn, "v1").Create(ctx, boat("v1", "skiff", spec)); err != nil {
		t.Fatal(err)
	}
	key := client.Key{Namespace: "default", Name: "skiff"}
	eventually(t, func() error { // API servers need a moment to notice a new conversion
		b, err := boats(conn, "v1beta1").Get(ctx, key)
		if err == nil && fields(b, "spec")["metres"] == nil {
			err = errors.New("it is not converted")
		}
		return err
	})
	checkVersions(t, conn, key)
	listed, _, err := boats(conn, "v1alpha1").All(ctx)
	if err != nil || len(listed) != 1 || fields(listed[0], "spec")["feet"] != int64(20) {
		t.Errorf("%v, %v", listed, err)
	}
	// What is written in a version, and read in another.
	alpha, err := boats(conn, "v1alpha1").Patch(ctx, key, client.MergePatch(`{"spec":{"feet":30},"metadata":{"labels":{"c":"d"}}}`))
	if err != nil || fields(alpha, "spec")["feet"] != int64(30) {
		t.Fatalf("%v, %v", alpha, err)
	}
	b, err := client.Of[*Boat](conn).Get(ctx, key)
	want := BoatSpec{Centimetres: 900, Crew: []Sailor{{Name: "ann", Rank: "captain"}, {Name: "bob", Rank: "mate"}}}
	if diff := cmp.Diff(want, b.Spec); diff != "" || err != nil || b.Labels["c"] != "d" || b.Annotations[crewAnnotation] != "" {
		t.Errorf("%v, %v: %s", b, err, diff)
	}
	// One that cannot be converted.
	_, err = boats(conn, "v1alpha1").Create(client.Once(ctx), boat("v1alpha1", "none", map[string]any{"feet": int64(-1)}))
	if err == nil || !strings.Contains(err.Error(), "a boat of less than nothing") {
		t.Error(err)
	}
}

func fields(b *unstructured.Unstructured, key string) map[string]any {
	out, _ := b.Object[key].(map[string]any)
	return out
}

func checkVersions(t *testing.T, conn *client.Conn, key client.Key) {
	t.Helper()
	v1, err := boats(conn, "v1").Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]map[string]any{
		"v1beta1": {
			"metres": int64(6), "unknown": map[string]any{"b": false, "n": int64(0)},
			"crew": []any{map[string]any{"name": "ann", "rank": "captain", "since": int64(1999)}, map[string]any{"name": "bob", "rank": "mate"}},
		},
		"v1alpha1": {"feet": int64(20), "names": []any{"ann", "bob"}, "unknown": map[string]any{"b": false, "n": int64(0)}},
	} {
		got, err := boats(conn, version).Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, fields(got, "spec")); diff != "" {
			t.Errorf("%s: %s", version, diff)
		}
		got.SetAnnotations(v1.GetAnnotations())
		got.SetManagedFields(v1.GetManagedFields()) // they name a version each
		if diff := cmp.Diff(fields(v1, "metadata"), fields(got, "metadata")); diff != "" {
			t.Errorf("%s: %s", version, diff)
		}
	}
}

// This is the whole of it: kube-apiserver finds the webhooks by what the server has
// registered, trusts the certificates that it has made, and does as it says.
func TestOnKubeAPIServer(t *testing.T) {
	conn, err := client.Connect(peer.Start(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	applyDefinition(t, conn)
	run(t, webhook.New(conn, webhook.Options{Name: "boats", Logger: quiet},
		webhook.Mutate(mutateBoat),
		webhook.Validate(validateBoat, webhook.On(admissionv1.Create, admissionv1.Update, admissionv1.Delete)),
		conversions()))
	eventually(t, func() error { // kube-apiserver needs a moment to notice a webhook
		_, err := boats(conn, "v1").Create(t.Context(), boat("v1", "bad", map[string]any{"centimetres": int64(-1)}), client.Dry())
		if !apierrors.IsInvalid(err) {
			return fmt.Errorf("not refused yet: %v", err)
		}
		b, err := boats(conn, "v1").Create(t.Context(), boat("v1", "good", map[string]any{}), client.Dry())
		if err == nil && fields(b, "spec")["centimetres"] != int64(300) {
			err = fmt.Errorf("not defaulted yet: %v", b)
		}
		return err
	})
	t.Run("admission", func(t *testing.T) { checkAdmission(t, conn) })
	t.Run("conversion", func(t *testing.T) { checkConversion(t, conn) })
}

func checkAdmission(t *testing.T, conn *client.Conn) {
	ctx, key := t.Context(), client.Key{Namespace: "default", Name: "dinghy"}
	b, err := boats(conn, "v1").Create(ctx, boat("v1", "dinghy", map[string]any{
		"unknown": "u", "crew": []any{map[string]any{"name": "ann", "since": int64(1999)}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"unknown": "u", "centimetres": int64(300), "crew": []any{map[string]any{"name": "ann", "since": int64(1999), "rank": "mate"}},
	}
	if diff := cmp.Diff(want, fields(b, "spec")); diff != "" || b.GetAnnotations()["example.com/by"] == "" {
		t.Errorf("%v: %s", b, diff)
	}
	_, err = boats(conn, "v1").Patch(ctx, key, client.MergePatch(`{"spec":{"centimetres":-1}}`))
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || len(status.ErrStatus.Details.Causes) != 2 {
		t.Errorf("%#v", err)
	}
	for _, part := range []string{`denied the request: Boat.example.com "dinghy" is invalid`, "spec.centimetres: Invalid value: -1: a boat has a length"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	if _, err := boats(conn, "v1").Patch(ctx, key, client.MergePatch(`{"metadata":{"labels":{"keep":"yes"}}}`)); err != nil {
		t.Fatal(err)
	}
	if err := boats(conn, "v1").Delete(ctx, key); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the boat is kept") {
		t.Error(err)
	}
	if _, err := boats(conn, "v1").Patch(ctx, key, client.MergePatch(`{"metadata":{"labels":{"keep":null},"finalizers":null}}`)); err != nil {
		t.Fatal(err)
	}
	if err := boats(conn, "v1").Delete(ctx, key); err != nil {
		t.Error(err)
	}
}
