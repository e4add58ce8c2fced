package patch

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

func TestCatalogHasTheTypesOfClientGo(t *testing.T) {
	cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	tv, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(cm)
	if err != nil {
		t.Fatal(err)
	}
	c := &catalog{types: map[string]*node{}}
	for _, want := range tv.Schema().Types {
		got := c.nodeLocked(want.Name).TypeDef
		a, b := strip(want), strip(got)
		if !a.Equals(&b) {
			t.Errorf("%s: got %+v\nwant %+v", want.Name, got, want)
		}
	}
}

func strip(t smd.TypeDef) smd.TypeDef { return t }
