package client

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Served is what a server serves, as far as it can tell.
type Served struct {
	// Resources are of all groups and versions; the versions of a group come in the
	// order in which the server prefers them.
	Resources []ServedResource
	// Stale are versions of which the server cannot tell what they have just now:
	// what is missing among their resources may be there.
	Stale []schema.GroupVersion
}

// ServedResource is a resource in one version, and what can be done with it.
type ServedResource struct {
	Resource
	Verbs []string
}

// Can reports whether the resource has all of these verbs.
func (r ServedResource) Can(verbs ...string) bool {
	for _, v := range verbs {
		if !slices.Contains(r.Verbs, v) {
			return false
		}
	}
	return true
}

// mediaDiscovery is the form of discovery that tells all groups at once.
const mediaDiscovery = mediaJSON + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// Served asks the server what it serves, in two requests. Servers know how to tell
// since Kubernetes 1.30; older ones are an [ErrMalformed].
func (c *Conn) Served(ctx context.Context) (Served, error) {
	var out Served
	for _, path := range []string{"/api", "/apis"} {
		list, err := c.discovery(ctx, path)
		if err != nil {
			return Served{}, fmt.Errorf("discover %s: %w", path, err)
		}
		for _, g := range list.Items {
			out.add(g)
		}
	}
	return out, nil
}

func (c *Conn) discovery(ctx context.Context, path string) (*apidiscoveryv2.APIGroupDiscoveryList, error) {
	body, err := c.read(ctx, &call{method: http.MethodGet, path: path, accept: mediaDiscovery})
	if err != nil {
		return nil, err
	}
	defer body.free()
	list := &apidiscoveryv2.APIGroupDiscoveryList{}
	if err := decodeJSON(body.bytes, list); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return nil, fmt.Errorf("%w: %q is no list of all groups", ErrMalformed, list.Kind)
	}
	return list, nil
}

func (s *Served) add(g apidiscoveryv2.APIGroupDiscovery) {
	for _, v := range g.Versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Version}
		if v.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
			s.Stale = append(s.Stale, gv)
		}
		for _, r := range v.Resources {
			if r.ResponseKind == nil {
				continue // it has subresources only
			}
			s.Resources = append(s.Resources, ServedResource{Verbs: r.Verbs, Resource: Resource{
				GroupVersionResource: gv.WithResource(r.Resource), Kind: r.ResponseKind.Kind,
				Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace,
			}})
		}
	}
}
