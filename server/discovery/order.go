package discovery

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/version"
)

// groupOrder is the order of the built-in groups; all others follow, by name.
// Clients that are asked for a name without a group take the first that has it.
var groupOrder = []string{
	"apiregistration.k8s.io",
	"apps",
	"events.k8s.io",
	"authentication.k8s.io",
	"authorization.k8s.io",
	"autoscaling",
	"batch",
	"certificates.k8s.io",
	"networking.k8s.io",
	"policy",
	"rbac.authorization.k8s.io",
	"storage.k8s.io",
	"admissionregistration.k8s.io",
	"apiextensions.k8s.io",
	"scheduling.k8s.io",
	"coordination.k8s.io",
	"node.k8s.io",
	"discovery.k8s.io",
	"resource.k8s.io",
	"flowcontrol.apiserver.k8s.io",
	"internal.apiserver.k8s.io",
	"storagemigration.k8s.io",
}

func compareGroups(a, b string) int {
	return cmp.Or(cmp.Compare(groupRank(a), groupRank(b)), cmp.Compare(a, b))
}

func groupRank(group string) int {
	if i := slices.Index(groupOrder, group); i >= 0 {
		return i
	}
	return len(groupOrder)
}

// compareVersions puts stable versions first, and of those the newest.
func compareVersions(a, b string) int {
	return version.CompareKubeAwareVersionStrings(b, a)
}

// group is the resources of a group.
type group struct {
	name     string
	versions []groupVersion // the preferred one first
}

type groupVersion struct {
	version   string
	resources []Resource
}

// arrange sorts resources into groups and versions. Of two resources with the
// same name in a version, the first counts.
func arrange(resources []Resource) []group {
	sorted := slices.Clone(resources)
	slices.SortStableFunc(sorted, func(a, b Resource) int {
		return cmp.Or(
			compareGroups(a.GroupVersion.Group, b.GroupVersion.Group),
			compareVersions(a.GroupVersion.Version, b.GroupVersion.Version),
			cmp.Compare(a.Resource, b.Resource),
		)
	})
	sorted = slices.CompactFunc(sorted, func(a, b Resource) bool {
		return a.GroupVersion == b.GroupVersion && a.Resource == b.Resource
	})
	var groups []group
	for _, r := range sorted {
		gv := r.GroupVersion
		if n := len(groups); n == 0 || groups[n-1].name != gv.Group {
			groups = append(groups, group{name: gv.Group})
		}
		g := &groups[len(groups)-1]
		if n := len(g.versions); n == 0 || g.versions[n-1].version != gv.Version {
			g.versions = append(g.versions, groupVersion{version: gv.Version})
		}
		v := &g.versions[len(g.versions)-1]
		v.resources = append(v.resources, r)
	}
	return groups
}
