package openapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/openapi"
)

func TestIndexHoldsTheHashesOfAllDocuments(t *testing.T) {
	tests := map[string]func(*openapi.Docs){
		"made before the documents": func(*openapi.Docs) {},
		"made after one of them":    func(d *openapi.Docs) { d.V3("apis/apps/v1") },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			docs := openapi.New(openapi.FromKinds(kinds.All()))
			prepare(docs)
			for path, entry := range at(parse(t, docs.Index().Body), "paths").(object) {
				doc, ok := docs.V3(path)
				sum := sha256.Sum256(doc.Body)
				if want := strings.ToUpper(hex.EncodeToString(sum[:])); !ok || doc.Hash != want {
					t.Errorf("%s: hash %s, want %s", path, doc.Hash, want)
				}
				if got, want := at(entry, "serverRelativeURL"), "/openapi/v3/"+path+"?hash="+doc.Hash; got != want {
					t.Errorf("%s: %s, want %s", path, got, want)
				}
			}
		})
	}
}

func TestIndexHasGroupsAndVersions(t *testing.T) {
	paths := " " + strings.Join(v3Paths(t, testDocs()), " ") + " "
	for _, path := range []string{"api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "apis/autoscaling/v1", "apis/autoscaling/v2", "version"} {
		if !strings.Contains(paths, " "+path+" ") {
			t.Errorf("no %s in %s", path, paths)
		}
	}
}

func TestDocumentsAreTheSameEachTime(t *testing.T) {
	again := openapi.New(openapi.FromKinds(kinds.All()))
	if testDocs().Index().Hash != again.Index().Hash {
		t.Error("the indexes of two equal servers differ")
	}
	if testDocs().V2().Hash != again.V2().Hash || testDocs().V2Proto().Hash != again.V2Proto().Hash {
		t.Error("the documents of version 2 of two equal servers differ")
	}
}

func TestUpdateTouchesOneGroupVersion(t *testing.T) {
	docs := openapi.New(openapi.FromKinds(kinds.All()))
	hash := func(path string) string { doc, _ := docs.V3(path); return doc.Hash }
	core, index, v2, proto := hash("api/v1"), docs.Index().Hash, docs.V2().Hash, docs.V2Proto().Hash
	before, _ := docs.V3("api/v1")
	apps := hash("apis/apps/v1")

	gv := schema.GroupVersion{Group: "apps", Version: "v1"}
	docs.Update(gv, resourcesOf(gv)[:2])
	after, _ := docs.V3("api/v1")
	if hash("api/v1") != core || &before.Body[0] != &after.Body[0] {
		t.Error("the document of api/v1 was made again")
	}
	if hash("apis/apps/v1") == apps || docs.Index().Hash == index || docs.V2().Hash == v2 || docs.V2Proto().Hash == proto {
		t.Error("a document is still the old one")
	}

	docs.Update(gv, nil)
	for _, path := range []string{"apis/apps/v1", "apis/apps"} {
		if _, ok := docs.V3(path); ok || at(parse(t, docs.Index().Body), "paths", path) != nil {
			t.Errorf("%s is still there", path)
		}
	}

	docs.Update(gv, resourcesOf(gv))
	if hash("apis/apps/v1") != apps || docs.Index().Hash != index {
		t.Error("what was taken away and given back is not the same")
	}
}

func TestUpdateKeepsAGroupWithAnotherVersion(t *testing.T) {
	docs := openapi.New(openapi.FromKinds(kinds.All()))
	docs.Update(schema.GroupVersion{Group: "autoscaling", Version: "v1"}, nil)
	if _, ok := docs.V3("apis/autoscaling"); !ok {
		t.Error("the group went with one of its versions")
	}
}

// Readers and updates at once; the race detector looks on.
func TestDocsAreSafeForConcurrentUse(t *testing.T) {
	gv := schema.GroupVersion{Group: "storage.k8s.io", Version: "v1"}
	docs := openapi.New(append(resourcesOf(gv), resourcesOf(schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"})...))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 3 {
				docs.Index()
				docs.V3("apis/networking.k8s.io/v1")
				docs.V3("apis/storage.k8s.io/v1")
				docs.V2()
			}
		})
		wg.Go(func() { docs.Update(gv, resourcesOf(gv)[:i%2+1]) })
	}
	wg.Wait()
	if _, ok := docs.V3("apis/storage.k8s.io/v1"); !ok {
		t.Error("a document is lost")
	}
}

func TestEveryKindHasAModel(t *testing.T) {
	for _, k := range kinds.All() {
		root := "api/" + k.GVK.Version
		if k.GVK.Group != "" {
			root = "apis/" + k.GVK.Group + "/" + k.GVK.Version
		}
		want := fmt.Sprintf("[map[group:%s kind:%s version:%s]]", k.GVK.Group, k.GVK.Kind, k.GVK.Version)
		if !hasKind(v3(t, testDocs(), root), want) {
			t.Errorf("%s: no model of kind %s", root, k.GVK.Kind)
		}
	}
}

func hasKind(doc object, want string) bool {
	for _, model := range at(doc, "components", "schemas").(object) {
		if fmt.Sprint(at(model, "x-kubernetes-group-version-kind")) == want {
			return true
		}
	}
	return false
}
