package openapi_test

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/openapi"
)

func BenchmarkV3(b *testing.B) {
	for _, path := range []string{"api/v1", "apis/apps/v1", "apis/rbac.authorization.k8s.io/v1", "version"} {
		b.Run(path, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				doc, _ := openapi.New(openapi.FromKinds(kinds.All())).V3(path)
				b.SetBytes(int64(len(doc.Body)))
			}
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		openapi.New(openapi.FromKinds(kinds.All())).Index()
	}
}

func BenchmarkV2(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		doc := openapi.New(openapi.FromKinds(kinds.All())).V2()
		b.SetBytes(int64(len(doc.Body)))
	}
}

func BenchmarkV2Proto(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		doc := openapi.New(openapi.FromKinds(kinds.All())).V2Proto()
		b.SetBytes(int64(len(doc.Body)))
	}
}

// manyDefinitions are 1,000 groups with the test's definition in each.
func manyDefinitions(b *testing.B) []*apiextensionsv1.CustomResourceDefinition {
	var all []*apiextensionsv1.CustomResourceDefinition
	for i := range 1000 {
		crd := testDefinition(b)
		crd.Spec.Group = fmt.Sprintf("g%d.example.com", i)
		crd.Spec.Versions = crd.Spec.Versions[:1]
		all = append(all, crd)
	}
	return all
}

func update(docs *openapi.Docs, crd *apiextensionsv1.CustomResourceDefinition) {
	for _, r := range openapi.FromDefinition(crd) {
		docs.Update(r.GVK.GroupVersion(), []openapi.Resource{r})
	}
}

func BenchmarkUpdateOf1000(b *testing.B) {
	all := manyDefinitions(b)
	b.ReportAllocs()
	for b.Loop() {
		docs := openapi.New(openapi.FromKinds(kinds.All()))
		for _, crd := range all {
			update(docs, crd)
		}
	}
}

func BenchmarkIndexOf1000(b *testing.B) {
	all := manyDefinitions(b)
	docs := openapi.New(openapi.FromKinds(kinds.All()))
	for _, name := range []string{"first", "after one update"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if name == "first" {
					docs = openapi.New(openapi.FromKinds(kinds.All()))
					for _, crd := range all {
						update(docs, crd)
					}
				}
				update(docs, all[0])
				docs.Index()
			}
		})
	}
}

func BenchmarkCustomV3(b *testing.B) {
	crd := testDefinition(b)
	b.ReportAllocs()
	for b.Loop() {
		doc, _ := openapi.New(openapi.FromDefinition(crd)).V3(stable + "v1")
		b.SetBytes(int64(len(doc.Body)))
	}
}

func BenchmarkV2Of1000(b *testing.B) {
	all := manyDefinitions(b)
	docs := openapi.New(openapi.FromKinds(kinds.All()))
	for _, crd := range all {
		update(docs, crd)
	}
	b.ReportAllocs()
	for b.Loop() {
		update(docs, all[0])
		b.SetBytes(int64(len(docs.V2().Body)))
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		openapi.New(openapi.FromKinds(kinds.All()))
	}
}
