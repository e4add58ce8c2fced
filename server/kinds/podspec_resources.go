package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkRequirements checks limits and requests; name checks that of a resource.
func (c *podChecker) checkRequirements(r *corev1.ResourceRequirements, path *field.Path, name func(corev1.ResourceName, *field.Path)) {
	limits, requests := path.Child("limits"), path.Child("requests")
	huge, computing := false, false
	for _, side := range []struct {
		path *field.Path
		list corev1.ResourceList
	}{{limits, r.Limits}, {requests, r.Requests}} {
		for n, q := range side.list {
			at := side.path.Key(string(n))
			name(n, at)
			c.checkQuantity(n, q, at)
			if isHugePage(n) {
				huge = true
				c.checkPages(n, q, at)
			}
			computing = computing || n == corev1.ResourceCPU || n == corev1.ResourceMemory
		}
	}
	for n, q := range r.Requests {
		c.checkRequest(n, q, r.Limits, limits, requests)
	}
	if huge && !computing {
		c.forbidden(path, "HugePages require cpu or memory")
	}
	c.checkClaimNames(r.Claims, path.Child("claims"))
}

// checkRequest checks a request against its limit; what cannot be shared must be
// requested as it is limited.
func (c *podChecker) checkRequest(n corev1.ResourceName, q resource.Quantity, list corev1.ResourceList, limits, requests *field.Path) {
	limit, limited := list[n]
	shared := isNative(n) && !isHugePage(n)
	switch {
	case !limited && !shared:
		c.required(limits, "Limit must be set for non overcommitable resources")
	case !limited:
	case !shared && q.Cmp(limit) != 0:
		c.invalid(requests, q.String(), fmt.Sprintf("must be equal to %s limit of %s", n, limit.String()))
	case q.Cmp(limit) > 0:
		c.invalid(requests, q.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", n, limit.String()))
	}
}

func (c *podChecker) checkQuantity(n corev1.ResourceName, q resource.Quantity, path *field.Path) {
	c.add(validateQuantity(n, q, path)...)
}

// validateQuantity checks the amount of a resource.
func validateQuantity(n corev1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	var p problems
	if q.Sign() < 0 {
		p.invalid(path, q.String(), "must be greater than or equal to 0")
	}
	if isCounted(n) && q.MilliValue()%1000 != 0 {
		p.invalid(path, q.String(), "must be an integer")
	}
	return p.list
}

// checkPages checks that an amount of huge pages is one of whole pages.
func (c *podChecker) checkPages(n corev1.ResourceName, q resource.Quantity, path *field.Path) {
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(n), corev1.ResourceHugePagesPrefix))
	if err != nil || size.Sign() <= 0 || size.MilliValue()%1000 != 0 || size.Value() <= 0 || q.Value()%size.Value() != 0 {
		c.invalid(path, q.String(), fmt.Sprintf("%s is not positive integer multiple of %s", q.String(), n))
	}
}

// isNative reports whether a resource is Kubernetes' own.
func isNative(n corev1.ResourceName) bool {
	return !strings.Contains(string(n), "/") || strings.Contains(string(n), corev1.ResourceDefaultNamespacePrefix)
}

// isExtended reports whether a resource is one that nodes were taught.
func isExtended(n corev1.ResourceName) bool {
	return !isNative(n) && !strings.HasPrefix(string(n), corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(n))) == 0
}

// countedResources are those of which there are no fractions.
var countedResources = []corev1.ResourceName{
	corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
	corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
	corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
}

func isCounted(n corev1.ResourceName) bool {
	return slices.Contains(countedResources, n) || isExtended(n)
}

// standardResources are the names without a domain that mean something, though
// not all to containers.
var standardResources = append(slices.Clone(countedResources),
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceStorage,
	corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage, corev1.ResourceRequestsStorage,
	corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage)

// checkResourceName reports whether n is the name of any resource.
func (c *podChecker) checkResourceName(n corev1.ResourceName, path *field.Path) bool {
	if faults := validation.IsQualifiedName(string(n)); len(faults) > 0 {
		c.invalid(path, n, faults...)
		return false
	}
	standard := slices.Contains(standardResources, n) || isHugePage(n) || strings.HasPrefix(string(n), corev1.ResourceRequestsHugePagesPrefix)
	if !strings.Contains(string(n), "/") && !standard {
		c.invalid(path, n, "must be a standard resource type or fully qualified")
		return false
	}
	return true
}

func (c *podChecker) checkContainerResource(n corev1.ResourceName, path *field.Path) {
	c.checkResourceName(n, path)
	switch {
	case !strings.Contains(string(n), "/"):
		if n != corev1.ResourceCPU && n != corev1.ResourceMemory && n != corev1.ResourceEphemeralStorage && !isHugePage(n) {
			c.invalid(path, n, "must be a standard resource for containers")
		}
	case !isNative(n) && !isExtended(n):
		c.invalid(path, n, "doesn't follow extended resource name standard")
	}
}

func (c *podChecker) checkPodResource(n corev1.ResourceName, path *field.Path) {
	if c.checkResourceName(n, path) && !isPodLevel(n) {
		oneOf(&c.problems, path, n, corev1.ResourceCPU, corev1.ResourceHugePagesPrefix, corev1.ResourceMemory)
	}
}

// checkPodResources checks what is given for the pod as a whole, and that its
// containers keep within.
func (c *podChecker) checkPodResources() {
	c.checkRequirements(&corev1.ResourceRequirements{Limits: c.spec.Overhead}, c.path.Child("overhead"), c.checkContainerResource)
	r, path := c.spec.Resources, c.path.Child("resources")
	if r == nil {
		return
	}
	if c.spec.OS != nil && c.spec.OS.Name == corev1.Windows {
		c.forbidden(path, "may not be set for a windows pod")
		return
	}
	if r.Claims != nil {
		c.forbidden(path.Child("claims"), "claims may not be set for Resources at pod-level")
	}
	c.checkRequirements(r, path, c.checkPodResource)
	for n, sum := range aggregate(c.spec, requestsOf) {
		if q, has := r.Requests[n]; has && sum.Cmp(q) > 0 {
			c.invalid(path.Child("requests").Key(string(n)), q.String(),
				"must be greater than or equal to aggregate container requests of "+sum.String())
		}
	}
	for n, sum := range aggregate(c.spec, limitsOf) {
		if q, has := r.Limits[n]; has && isHugePage(n) && sum.Cmp(q) > 0 {
			c.invalid(path.Child("limits").Key(string(n)), q.String(),
				"must be greater than or equal to aggregate container limits of "+sum.String())
		}
	}
	for i := range c.spec.Containers {
		for n, q := range c.spec.Containers[i].Resources.Limits {
			if limit, has := r.Limits[n]; has && q.Cmp(limit) > 0 {
				c.invalid(path.Child("containers").Index(i).Key(string(n)).Child("limits"), q.String(),
					"must be less than or equal to pod limits of "+limit.String())
			}
		}
	}
}

// checkResourceClaims checks the pod's claims on devices.
func (c *podChecker) checkResourceClaims() {
	names := seen{}
	for i, claim := range c.spec.ResourceClaims {
		path := c.path.Child("resourceClaims").Index(i)
		if claim.Name != "" && names.again(claim.Name) {
			c.duplicate(path.Child("name"), claim.Name)
		} else {
			c.named(path.Child("name"), claim.Name, validation.IsDNS1123Label)
		}
		switch {
		case claim.ResourceClaimName != nil && claim.ResourceClaimTemplateName != nil:
			c.invalid(path, claim, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
		case claim.ResourceClaimName == nil && claim.ResourceClaimTemplateName == nil:
			c.invalid(path, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
		}
		if n := claim.ResourceClaimName; n != nil {
			c.invalid(path.Child("resourceClaimName"), *n, validation.IsDNS1123Subdomain(*n)...)
		}
		if n := claim.ResourceClaimTemplateName; n != nil {
			c.invalid(path.Child("resourceClaimTemplateName"), *n, validation.IsDNS1123Subdomain(*n)...)
		}
	}
}

// checkClaimNames checks which of the pod's claims a container uses: a claim
// once as a whole, or each of its requests once.
func (c *podChecker) checkClaimNames(claims []corev1.ResourceClaim, path *field.Path) {
	used := map[string]map[string]bool{}
	for i, claim := range claims {
		path := path.Index(i)
		if claim.Name == "" {
			c.required(path, "")
			continue
		}
		requests := used[claim.Name]
		switch {
		case requests[""] || claim.Request == "" && len(requests) > 0:
			c.duplicate(path, claim.Name)
		case requests[claim.Request]:
			c.duplicate(path, claim.Name+"/"+claim.Request)
		}
		if requests == nil {
			requests = map[string]bool{}
			used[claim.Name] = requests
		}
		requests[claim.Request] = true
		if claim.Request != "" {
			c.invalid(path.Child("request"), claim.Request, validation.IsDNS1123Label(claim.Request)...)
		}
		if !c.claims[claim.Name] {
			missing := field.NotFound(path, claim.Name)
			missing.Detail = "must be one of the names in pod.spec.resourceClaims which is empty"
			if len(c.claims) > 0 {
				missing.Detail = "must be one of the names in pod.spec.resourceClaims: " + strings.Join(slices.Sorted(maps.Keys(c.claims)), ", ")
			}
			c.add(missing)
		}
	}
}
