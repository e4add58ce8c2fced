package discovery

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The documents of old: one for each level of the paths. Those of the group ""
// carry a kind and no apiVersion.

func typeMeta(kind, group string) metav1.TypeMeta {
	if group == "" {
		return metav1.TypeMeta{Kind: kind}
	}
	return metav1.TypeMeta{Kind: kind, APIVersion: "v1"}
}

func apiVersions(core group, address string) *metav1.APIVersions {
	d := &metav1.APIVersions{
		TypeMeta: typeMeta("APIVersions", ""),
		Versions: []string{},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
			{ClientCIDR: "0.0.0.0/0", ServerAddress: address},
		},
	}
	for _, v := range core.versions {
		d.Versions = append(d.Versions, v.version)
	}
	return d
}

func apiGroupList(groups []group) *metav1.APIGroupList {
	d := &metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{},
	}
	for _, g := range groups {
		d.Groups = append(d.Groups, apiGroup(g))
	}
	return d
}

func apiGroup(g group) metav1.APIGroup {
	d := metav1.APIGroup{Name: g.name}
	for _, v := range g.versions {
		gv := schema.GroupVersion{Group: g.name, Version: v.version}
		d.Versions = append(d.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v.version})
	}
	d.PreferredVersion = d.Versions[0]
	return d
}

func apiResourceList(name string, v groupVersion) *metav1.APIResourceList {
	gv := schema.GroupVersion{Group: name, Version: v.version}
	d := &metav1.APIResourceList{
		TypeMeta:     typeMeta("APIResourceList", name),
		GroupVersion: gv.String(),
		APIResources: []metav1.APIResource{},
	}
	for _, r := range v.resources {
		d.APIResources = append(d.APIResources, metav1.APIResource{
			Name:               r.Resource,
			SingularName:       r.Singular,
			Namespaced:         r.Namespaced,
			Kind:               r.Kind,
			Verbs:              r.Verbs,
			ShortNames:         r.ShortNames,
			Categories:         r.Categories,
			StorageVersionHash: r.StorageVersionHash,
		})
		for _, s := range r.Subresources {
			d.APIResources = append(d.APIResources, apiSubresource(r, s))
		}
	}
	return d
}

// apiSubresource names group and version only if they are not the resource's.
func apiSubresource(r Resource, s Subresource) metav1.APIResource {
	d := metav1.APIResource{
		Name:       r.Resource + "/" + s.Name,
		Namespaced: r.Namespaced,
		Kind:       s.GVK.Kind,
		Verbs:      s.Verbs,
	}
	if s.GVK.GroupVersion() != r.GroupVersion {
		d.Group, d.Version = s.GVK.Group, s.GVK.Version
	}
	return d
}
