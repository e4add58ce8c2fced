package kinds

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func coreKindOf(t testing.TB, resource string) *Kind {
	t.Helper()
	for _, k := range core() {
		if k.Resource == resource {
			return k
		}
	}
	t.Fatalf("no kind with the resource %s", resource)
	return nil
}

// coreObject decodes a document and gives it its defaults.
func coreObject(t testing.TB, k *Kind, doc string) runtime.Object {
	t.Helper()
	obj := k.New()
	if err := json.Unmarshal([]byte(doc), obj); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	if k.Default != nil {
		k.Default(obj)
	}
	return obj
}

// coreCreated is what a create leads to.
func coreCreated(t testing.TB, k *Kind, doc string) runtime.Object {
	t.Helper()
	obj := coreObject(t, k, doc)
	if k.PrepareCreate != nil {
		k.PrepareCreate(obj)
	}
	return obj
}

func coreCreateErrors(k *Kind, obj runtime.Object) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []func(runtime.Object) field.ErrorList{k.Validate, k.ValidateCreate} {
		if f != nil {
			errs = append(errs, f(obj)...)
		}
	}
	return errs
}

func coreUpdateErrors(k *Kind, obj, old runtime.Object) field.ErrorList {
	var errs field.ErrorList
	if k.Validate != nil {
		errs = k.Validate(obj)
	}
	if k.ValidateUpdate != nil {
		errs = append(errs, k.ValidateUpdate(obj, old)...)
	}
	return errs
}

// coreCauses are errors as the causes of a Status, sorted.
func coreCauses(errs field.ErrorList) []string {
	var causes []string
	for _, e := range errs {
		causes = append(causes, string(e.Type)+" "+e.Field+": "+e.ErrorBody())
	}
	slices.Sort(causes)
	return causes
}

func coreJSON(t testing.TB, v any) map[string]any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

var coreNow = metav1.NewTime(time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC))

func coreAgo(d time.Duration) string { return coreNow.Add(-d).Format(time.RFC3339) }

func TestCoreKindsAreWhole(t *testing.T) {
	for _, k := range core() {
		t.Run(k.Resource, func(t *testing.T) {
			if k.New == nil || k.Singular == "" || !Scheme().Recognizes(k.GVK) {
				t.Errorf("%+v lacks a name or a type", k)
			}
			if got, _, err := Scheme().ObjectKinds(k.New()); err != nil || got[0] != k.GVK {
				t.Errorf("New makes a %v, %v", got, err)
			}
			if k.CreateOnly {
				return
			}
			if got, _, err := Scheme().ObjectKinds(k.NewList()); err != nil || got[0].Kind != k.GVK.Kind+"List" {
				t.Errorf("NewList makes a %v, %v", got, err)
			}
			if row := k.Cells(k.New(), coreNow); len(row) != len(k.Columns) {
				t.Errorf("%d cells in %d columns", len(row), len(k.Columns))
			}
			if (k.Fields == nil) != (k.FieldSet == nil) {
				t.Error("fields without values, or values without fields")
			}
		})
	}
}

func TestCoreTraits(t *testing.T) {
	type traits struct {
		Short, Categories                        []string
		Namespaced, Status, Generation           bool
		CreateOnUpdate, NeedsRevision, ReturnsIt bool
		Subresources                             []string
	}
	for resource, want := range map[string]traits{
		"bindings":   {Namespaced: true},
		"configmaps": {Short: []string{"cm"}, Namespaced: true},
		"events":     {Short: []string{"ev"}, Namespaced: true, CreateOnUpdate: true},
		"leases":     {Namespaced: true, CreateOnUpdate: true, NeedsRevision: true},
		"namespaces": {Short: []string{"ns"}, Status: true, ReturnsIt: true, Subresources: []string{"finalize"}},
		"nodes":      {Short: []string{"no"}, Status: true, Subresources: []string{"proxy"}},
		"pods": {Short: []string{"po"}, Categories: []string{"all"}, Namespaced: true, Status: true, Generation: true, ReturnsIt: true,
			Subresources: []string{"attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize"}},
		"podtemplates":    {Namespaced: true, Generation: true, ReturnsIt: true},
		"secrets":         {Namespaced: true},
		"serviceaccounts": {Short: []string{"sa"}, Namespaced: true, ReturnsIt: true, Subresources: []string{"token"}},
	} {
		t.Run(resource, func(t *testing.T) {
			k := coreKindOf(t, resource)
			got := traits{k.ShortNames, k.Categories, k.Namespaced, k.HasStatus, k.HasGeneration,
				k.CreateOnUpdate, k.NeedsRevision, k.DeleteReturnsObject, nil}
			for _, s := range k.Subresources {
				got.Subresources = append(got.Subresources, s.Name)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// coreNameFaults is what the server finds wrong with a name.
func coreNameFaults(k *Kind, name string) []string {
	if k.ValidName != nil {
		return k.ValidName(name, false)
	}
	return apivalidation.NameIsDNSSubdomain(name, false)
}
