package kinds

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

func workloadKindOf(t testing.TB, resource string) *Kind {
	t.Helper()
	for _, k := range workloads() {
		if k.Resource == resource {
			return k
		}
	}
	t.Fatalf("no kind with the resource %s", resource)
	return nil
}

const workloadUID = "00000000-0000-4000-8000-000000000001"

// workloadCreated is what a create leads to, up to validation.
func workloadCreated(t testing.TB, k *Kind, doc string) (runtime.Object, error) {
	t.Helper()
	obj := coreObject(t, k, doc)
	if svc, ok := obj.(*corev1.Service); ok {
		if _, err := AllocateService(svc, nil, newTestPool().pool()); err != nil {
			return nil, err
		}
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	m.SetUID(workloadUID)
	m.SetCreationTimestamp(coreNow)
	if k.PrepareCreate != nil {
		k.PrepareCreate(obj)
	}
	return obj, nil
}

func TestWorkloadKindsAreWhole(t *testing.T) {
	for _, k := range workloads() {
		t.Run(k.Resource, func(t *testing.T) {
			if got, _, err := Scheme().ObjectKinds(k.New()); err != nil || got[0] != k.GVK {
				t.Errorf("New makes a %v, %v", got, err)
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
			for _, v := range k.Also {
				if got, _, err := Scheme().ObjectKinds(v.New()); err != nil || got[0] != v.GVK {
					t.Errorf("New of %s makes a %v, %v", v.GVK, got, err)
				}
			}
		})
	}
}

func TestWorkloadTraits(t *testing.T) {
	type traits struct {
		Short                                             []string
		All, Namespaced, Status, Generation, Scale        bool
		CreateOnUpdate, NeedsRevision, ReturnsIt, Orphans bool
	}
	for resource, want := range map[string]traits{
		"services":                 {Short: []string{"svc"}, All: true, Namespaced: true, Status: true, CreateOnUpdate: true, ReturnsIt: true},
		"endpoints":                {Short: []string{"ep"}, Namespaced: true, CreateOnUpdate: true},
		"replicationcontrollers":   {Short: []string{"rc"}, All: true, Namespaced: true, Status: true, Generation: true, Scale: true, Orphans: true},
		"persistentvolumes":        {Short: []string{"pv"}, Status: true, ReturnsIt: true},
		"persistentvolumeclaims":   {Short: []string{"pvc"}, Namespaced: true, Status: true, ReturnsIt: true},
		"resourcequotas":           {Short: []string{"quota"}, Namespaced: true, Status: true, ReturnsIt: true},
		"limitranges":              {Short: []string{"limits"}, Namespaced: true, CreateOnUpdate: true},
		"deployments":              {Short: []string{"deploy"}, All: true, Namespaced: true, Status: true, Generation: true, Scale: true},
		"replicasets":              {Short: []string{"rs"}, All: true, Namespaced: true, Status: true, Generation: true, Scale: true},
		"statefulsets":             {Short: []string{"sts"}, All: true, Namespaced: true, Status: true, Generation: true, Scale: true},
		"daemonsets":               {Short: []string{"ds"}, All: true, Namespaced: true, Status: true, Generation: true},
		"controllerrevisions":      {Namespaced: true},
		"jobs":                     {All: true, Namespaced: true, Status: true, Generation: true, Orphans: true},
		"cronjobs":                 {Short: []string{"cj"}, All: true, Namespaced: true, Status: true, Generation: true},
		"horizontalpodautoscalers": {Short: []string{"hpa"}, All: true, Namespaced: true, Status: true},
		"endpointslices":           {Namespaced: true, Generation: true},
		"storageclasses":           {Short: []string{"sc"}, ReturnsIt: true},
		"volumeattachments":        {Status: true, NeedsRevision: true, ReturnsIt: true},
		"csidrivers":               {NeedsRevision: true, ReturnsIt: true},
		"csinodes":                 {NeedsRevision: true, ReturnsIt: true},
		"csistoragecapacities":     {Namespaced: true, NeedsRevision: true},
	} {
		t.Run(resource, func(t *testing.T) {
			k := workloadKindOf(t, resource)
			got := traits{k.ShortNames, len(k.Categories) == 1 && k.Categories[0] == "all", k.Namespaced, k.HasStatus, k.HasGeneration, k.Scale != nil,
				k.CreateOnUpdate, k.NeedsRevision, k.DeleteReturnsObject, k.Orphans}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// workloadCase is a document, what is wrong with it, and what was there before
// ("" for a create; status says that the status is what is updated).
type workloadCase struct {
	resource, doc, old string
	status             bool
	want               []string
}

func runWorkloadCases(t *testing.T, cases map[string]workloadCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			slices.Sort(c.want)
			if d := cmp.Diff(c.want, workloadCauses(t, c)); d != "" {
				t.Error(d)
			}
		})
	}
}

func workloadCauses(t *testing.T, c workloadCase) []string {
	k := workloadKindOf(t, c.resource)
	if c.old == "" {
		obj, err := workloadCreated(t, k, c.doc)
		if err != nil {
			return statusCauses(t, err)
		}
		return coreCauses(coreCreateErrors(k, obj))
	}
	old, err := workloadCreated(t, k, c.old)
	if err != nil {
		t.Fatal(err)
	}
	if errs := coreCreateErrors(k, old); len(errs) > 0 {
		t.Fatalf("old object: %v", errs)
	}
	obj := coreObject(t, k, c.doc)
	m, _ := meta.Accessor(obj)
	m.SetUID(workloadUID)
	if c.status {
		return coreCauses(k.ValidateStatus(obj, old))
	}
	if svc, ok := obj.(*corev1.Service); ok {
		if _, err := AllocateService(svc, old.(*corev1.Service), newTestPool().pool()); err != nil {
			return statusCauses(t, err)
		}
	}
	if k.PrepareUpdate != nil {
		k.PrepareUpdate(obj, old)
	}
	return coreCauses(coreUpdateErrors(k, obj, old))
}
