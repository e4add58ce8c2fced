package discovery

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/even-keel/evenkeel/server/kinds"
)

// TestClientGo lets the discovery client read the documents in both shapes.
func TestClientGo(t *testing.T) {
	resources := append(FromKinds(kinds.All()), resource("example.com/v1 widgets Widget"), resource("v1 pods Pod"))
	d := New(resources, "h:1")
	for name, aggregated := range map[string]bool{"aggregated": true, "legacy": false} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				form := JSON
				if aggregated && strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") {
					form = AggregatedJSON
				}
				body, contentType, _, ok := d.Lookup(r.URL.Path, form)
				if !ok && form == AggregatedJSON {
					body, contentType, _, ok = d.Lookup(r.URL.Path, JSON)
				}
				if !ok {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", contentType)
				_, _ = w.Write(body)
			}))
			defer server.Close()
			client, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			groups, lists, err := client.ServerGroupsAndResources()
			if err != nil {
				t.Fatal(err)
			}
			if len(groups) == 0 || groups[0].Name != "" {
				t.Errorf("first of %d groups is not the core group", len(groups))
			}
			found := map[string]bool{}
			for _, l := range lists {
				for _, r := range l.APIResources {
					found[l.GroupVersion+" "+r.Name] = true
				}
			}
			for _, r := range resources {
				if !found[r.GroupVersion.String()+" "+r.Resource] {
					t.Errorf("no %s in %s", r.Resource, r.GroupVersion)
				}
				for _, s := range r.Subresources {
					if !found[r.GroupVersion.String()+" "+r.Resource+"/"+s.Name] {
						t.Errorf("no %s/%s in %s", r.Resource, s.Name, r.GroupVersion)
					}
				}
			}
			mapKinds(t, client)
		})
	}
}

// mapKinds asks for names as kubectl's users do.
func mapKinds(t *testing.T, client *clientdiscovery.DiscoveryClient) {
	t.Helper()
	list, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(list)
	for name, want := range map[string]schema.GroupVersionKind{
		"pods":                 {Version: "v1", Kind: "Pod"},
		"ingresses":            {Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
		"poddisruptionbudgets": {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		"widgets":              {Group: "example.com", Version: "v1", Kind: "Widget"},
	} {
		got, err := mapper.KindFor(schema.GroupVersionResource{Resource: name})
		if err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, err, want)
		}
	}
	if names := slices.Collect(shortNames(client, t)); !slices.Contains(names, "pdb") {
		t.Errorf("short names are %v", names)
	}
}

func shortNames(client *clientdiscovery.DiscoveryClient, t *testing.T) func(func(string) bool) {
	return func(yield func(string) bool) {
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Error(err)
		}
		for _, l := range lists {
			for _, r := range l.APIResources {
				for _, s := range r.ShortNames {
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}
