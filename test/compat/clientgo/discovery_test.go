package clientgo

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/disk"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/openapi/cached"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// described turns discovery into lines, for comparison.
func described(t *testing.T, lists []*metav1.APIResourceList) (lines []string) {
	t.Helper()
	for _, list := range lists {
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				r.SingularName = "" // aggregated documents have none, clients make one up
			}
			slices.Sort(r.Verbs)
			slices.Sort(r.ShortNames)
			slices.Sort(r.Categories)
			lines = append(lines, strings.Join([]string{
				list.GroupVersion, r.Name, r.SingularName, r.Kind, strings.Join(r.Verbs, ","),
				strings.Join(r.ShortNames, ","), strings.Join(r.Categories, ","), map[bool]string{true: "namespaced"}[r.Namespaced],
			}, " "))
		}
	}
	slices.Sort(lines)
	return lines
}

// TestDiscovery has the aggregated documents say what the legacy ones say.
func TestDiscovery(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		var aggregated atomic.Int64
		config := s.Admin()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				resp, err := next.RoundTrip(r)
				if err == nil && strings.Contains(resp.Header.Get("Content-Type"), "as=APIGroupDiscoveryList") {
					aggregated.Add(1)
				}
				return resp, err
			})
		})
		d := must(discovery.NewDiscoveryClientForConfig(config))(t)
		groups, resources, err := d.ServerGroupsAndResources()
		check(t, err)
		if n := aggregated.Load(); n != 2 {
			t.Errorf("%d aggregated documents were read, want those of /api and /apis", n)
		}
		legacyGroups, legacy, err := d.WithLegacy().ServerGroupsAndResources()
		check(t, err)
		if n := aggregated.Load(); n != 2 {
			t.Errorf("legacy discovery read aggregated documents")
		}
		if len(groups) != len(legacyGroups) {
			t.Errorf("%d groups, by the legacy documents %d", len(groups), len(legacyGroups))
		}
		got, want := described(t, resources), described(t, legacy)
		for _, line := range got {
			if !slices.Contains(want, line) {
				t.Errorf("only in the aggregated documents: %s", line)
			}
		}
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("only in the legacy documents: %s", line)
			}
		}
		preferred := must(d.ServerPreferredResources())(t)
		for _, gvr := range []schema.GroupVersionResource{configMaps, deployments, {Group: "events.k8s.io", Version: "v1", Resource: "events"}} {
			if !slices.ContainsFunc(preferred, func(l *metav1.APIResourceList) bool {
				return l.GroupVersion == gvr.GroupVersion().String() &&
					slices.ContainsFunc(l.APIResources, func(r metav1.APIResource) bool { return r.Name == gvr.Resource })
			}) {
				t.Errorf("%s is not preferred", gvr)
			}
		}
		version := must(d.ServerVersion())(t)
		if version.Major != "1" || version.Minor != "37" || !strings.HasPrefix(version.GitVersion, "v1.37.") {
			t.Errorf("version %+v", version)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestMapper finds resources as kubectl does: by kinds, plurals and short names.
func TestMapper(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		cached := memory.NewMemCacheClient(must(discovery.NewDiscoveryClientForConfig(s.Admin()))(t))
		mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
		for name, want := range map[string]schema.GroupVersionResource{
			"cm": configMaps, "configmap": configMaps, "deploy": deployments, "deployments.apps": deployments,
			"svc":     {Version: "v1", Resource: "services"},
			"ing":     {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
			"hpa":     {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
			"leases":  {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
			"po":      {Version: "v1", Resource: "pods"},
			"ns":      {Version: "v1", Resource: "namespaces"},
			"pdb":     {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
			"csr":     {Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"},
			"cronjob": {Group: "batch", Version: "v1", Resource: "cronjobs"},
		} {
			got, err := mapper.ResourceFor(schema.ParseGroupResource(name).WithVersion(""))
			if err != nil || got != want {
				t.Errorf("%s is %v (%v), want %v", name, got, err, want)
			}
		}
		mapping := must(mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}))(t)
		if mapping.Resource != deployments || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			t.Errorf("Deployment maps to %+v", mapping)
		}
		mapping = must(mapper.RESTMapping(schema.GroupKind{Kind: "Node"}))(t)
		if mapping.Scope.Name() != meta.RESTScopeNameRoot {
			t.Errorf("Node maps to %+v", mapping)
		}
	})
}

// TestCachedDiscovery has kubectl's cache ask again, and be told that nothing
// has changed.
func TestCachedDiscovery(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		var asked, unchanged atomic.Int64
		dir := t.TempDir()
		connect := func() discovery.CachedDiscoveryInterface {
			config := s.Admin()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					resp, err := next.RoundTrip(r)
					asked.Add(1)
					if err == nil && resp.StatusCode == http.StatusNotModified {
						unchanged.Add(1)
					}
					return resp, err
				})
			})
			return must(disk.NewCachedDiscoveryClientForConfig(config, dir+"/discovery", dir+"/http", time.Hour))(t)
		}
		first := connect()
		_, before, err := first.ServerGroupsAndResources()
		check(t, err)
		n := asked.Load()
		second := connect()
		_, after, err := second.ServerGroupsAndResources()
		check(t, err)
		if asked.Load() != n {
			t.Error("the cache asked the server")
		}
		if !slices.Equal(described(t, before), described(t, after)) {
			t.Error("the cache holds something else")
		}
		second.Invalidate()
		_, _, err = second.ServerGroupsAndResources()
		check(t, err)
		if unchanged.Load() == 0 {
			t.Errorf("after %d requests none was answered with 304", asked.Load())
		}
	})
}

func TestOpenAPI(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		d := must(discovery.NewDiscoveryClientForConfig(s.Admin()))(t)
		root := openapi3.NewRoot(cached.NewClient(d.OpenAPIV3()))
		versions := must(root.GroupVersions())(t)
		lists := must(d.ServerPreferredResources())(t)
		for _, list := range lists {
			gv := must(schema.ParseGroupVersion(list.GroupVersion))(t)
			if !slices.Contains(versions, gv) {
				t.Errorf("%s is served, but not described", gv)
			}
		}
		for _, gv := range []schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}} {
			spec := must(root.GVSpec(gv))(t)
			if len(spec.Paths.Paths) == 0 || len(spec.Components.Schemas) == 0 {
				t.Errorf("%s is described by %d paths and %d schemas", gv, len(spec.Paths.Paths), len(spec.Components.Schemas))
			}
		}
		v2 := must(d.OpenAPISchema())(t)
		if v2.Swagger != "2.0" || len(v2.Definitions.AdditionalProperties) == 0 {
			t.Errorf("the version 2 document is %q with %d definitions", v2.Swagger, len(v2.Definitions.AdditionalProperties))
		}
	})
}

func TestHealth(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		anonymous := rest.AnonymousClientConfig(s.Admin())
		d := must(discovery.NewDiscoveryClientForConfig(anonymous))(t)
		for _, path := range []string{"/healthz", "/livez", "/readyz", "/readyz?verbose"} {
			body, err := d.RESTClient().Get().RequestURI(path).DoRaw(t.Context())
			if err != nil || !strings.Contains(string(body), "ok") {
				t.Errorf("%s: %q, %v", path, body, err)
			}
		}
		must(d.ServerVersion())(t)
		_, err := d.RESTClient().Get().AbsPath("/apis").DoRaw(t.Context())
		refused(t, "anonymous discovery", err, apierrors.IsForbidden)
	})
}
