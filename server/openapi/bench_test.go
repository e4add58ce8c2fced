package openapi_test

import (
	"testing"

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

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		openapi.New(openapi.FromKinds(kinds.All()))
	}
}
