package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func aggregate(groups []group) *apidiscoveryv2.APIGroupDiscoveryList {
	d := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()},
		Items:    []apidiscoveryv2.APIGroupDiscovery{},
	}
	for _, g := range groups {
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		for _, v := range g.versions {
			item.Versions = append(item.Versions, aggregateVersion(v))
		}
		d.Items = append(d.Items, item)
	}
	return d
}

func aggregateVersion(v groupVersion) apidiscoveryv2.APIVersionDiscovery {
	d := apidiscoveryv2.APIVersionDiscovery{Version: v.version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, r := range v.resources {
		d.Resources = append(d.Resources, aggregateResource(r))
	}
	return d
}

func aggregateResource(r Resource) apidiscoveryv2.APIResourceDiscovery {
	d := apidiscoveryv2.APIResourceDiscovery{
		Resource:         r.Resource,
		ResponseKind:     responseKind(r, r.GroupVersion.WithKind(r.Kind)),
		Scope:            apidiscoveryv2.ScopeCluster,
		SingularResource: r.Singular,
		Verbs:            r.Verbs,
		ShortNames:       r.ShortNames,
		Categories:       r.Categories,
	}
	if r.Namespaced {
		d.Scope = apidiscoveryv2.ScopeNamespace
	}
	for _, s := range r.Subresources {
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource:  s.Name,
			ResponseKind: responseKind(r, s.GVK),
			Verbs:        s.Verbs,
		})
	}
	return d
}

// responseKind leaves out group and version where they are those of a built-in
// resource.
func responseKind(r Resource, gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
	if !r.Custom && gvk.GroupVersion() == r.GroupVersion {
		return &metav1.GroupVersionKind{Kind: gvk.Kind}
	}
	return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}
