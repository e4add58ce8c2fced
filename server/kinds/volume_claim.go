package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const claimFinalizer = "kubernetes.io/pvc-protection"

func persistentVolumeClaimKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		Resource: "persistentvolumeclaims", Singular: "persistentvolumeclaim",
		ShortNames: []string{"pvc"}, Namespaced: true,
		New: newOf[corev1.PersistentVolumeClaim], NewList: newOf[corev1.PersistentVolumeClaimList],
		HasStatus:           true,
		DeleteReturnsObject: true,
		Default:             each(defaultClaim),
		PrepareCreate:       each(prepareClaim),
		PrepareUpdate: eachPair(func(c, old *corev1.PersistentVolumeClaim) {
			enforceDataSource(&c.Spec, &old.Spec)
			normalizeDataSource(&c.Spec)
		}),
		Validate: check(func(c *corev1.PersistentVolumeClaim) field.ErrorList {
			p := &problems{}
			p.claimSpec(field.NewPath("spec"), &c.Spec)
			return p.list
		}),
		ValidateUpdate: checkPair(validateClaimUpdate),
		ValidateStatus: checkPair(validateClaimStatus),
		Warnings: warn(func(c, _ *corev1.PersistentVolumeClaim) []string {
			var out []string
			if _, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
				out = append(out, fmt.Sprintf("%s: deprecated since v1.8; use \"storageClassName\" attribute instead",
					field.NewPath("metadata", "annotations").Key(corev1.BetaStorageClassAnnotation)))
			}
			return append(out, claimSpecWarnings(field.NewPath("spec"), &c.Spec)...)
		}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Status", "Phase of the claim."), column("Volume", "Name of the bound volume."),
			column("Capacity", "Size of the bound volume."), column("Access Modes", "How the bound volume may be mounted."),
			column("StorageClass", "Class of the claim."), column("VolumeAttributesClass", "Attributes class of the claim."),
			ageColumn(), wideColumn("VolumeMode", "Whether a file system or a raw device is wanted."),
		},
		Cells: cells(claimCells),
	}
}

// defaultClaim also serves the claims in a StatefulSet.
func defaultClaim(c *corev1.PersistentVolumeClaim) {
	setEmpty(&c.Status.Phase, corev1.ClaimPending)
	setDefault(&c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(c.Spec.Resources.Requests)
	roundUp(c.Spec.Resources.Limits)
	roundUp(c.Status.Capacity)
	roundUp(c.Status.AllocatedResources)
}

func prepareClaim(c *corev1.PersistentVolumeClaim) {
	c.Status.Phase = corev1.ClaimPending
	if !slices.Contains(c.Finalizers, claimFinalizer) {
		c.Finalizers = append(slices.Clip(c.Finalizers), claimFinalizer)
	}
	enforceDataSource(&c.Spec, nil)
	normalizeDataSource(&c.Spec)
}

// enforceDataSource drops what is not served: references into other namespaces,
// and sources of old clients that are neither claim nor snapshot.
func enforceDataSource(s, old *corev1.PersistentVolumeClaimSpec) {
	if ref := s.DataSourceRef; ref != nil && ref.Namespace != nil && *ref.Namespace != "" && (old == nil || old.DataSourceRef == nil) {
		s.DataSourceRef = nil
	}
	if old != nil && (old.DataSource != nil || old.DataSourceRef != nil) {
		return
	}
	if s.DataSourceRef == nil && !claimOrSnapshot(s.DataSource) {
		s.DataSource = nil
	}
}

func claimOrSnapshot(ref *corev1.TypedLocalObjectReference) bool {
	if ref == nil {
		return false
	}
	group := ""
	if ref.APIGroup != nil {
		group = *ref.APIGroup
	}
	return ref.Kind == "PersistentVolumeClaim" && group == "" || ref.Kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io"
}

// normalizeDataSource fills in the one of dataSource and dataSourceRef that is
// missing.
func normalizeDataSource(s *corev1.PersistentVolumeClaimSpec) {
	switch from, ref := s.DataSource, s.DataSourceRef; {
	case from != nil && ref == nil:
		s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: from.APIGroup, Kind: from.Kind, Name: from.Name}
	case from == nil && ref != nil && (ref.Namespace == nil || *ref.Namespace == ""):
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}

// claimSpec checks a claim, or the template of one.
func (p *problems) claimSpec(path *field.Path, s *corev1.PersistentVolumeClaimSpec) {
	if len(s.AccessModes) == 0 {
		p.required(path.Child("accessModes"), "at least 1 access mode is required")
	}
	if s.Selector != nil {
		p.add(metavalidation.ValidateLabelSelector(s.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
	}
	p.accessModes(path.Child("accessModes"), s.AccessModes)
	storage := path.Child("resources").Key(string(corev1.ResourceStorage))
	if size, ok := s.Resources.Requests[corev1.ResourceStorage]; !ok {
		p.required(storage, "")
	} else if size.Sign() <= 0 {
		p.invalid(storage, size.String(), "must be greater than zero")
	}
	p.className(path.Child("storageClassName"), s.StorageClassName)
	if s.VolumeMode != nil {
		oneOf(p, path.Child("volumeMode"), *s.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	}
	p.claimSources(path, s)
	p.className(path.Child("volumeAttributesClassName"), s.VolumeAttributesClassName)
}

func (p *problems) claimSources(path *field.Path, s *corev1.PersistentVolumeClaimSpec) {
	if d := s.DataSource; d != nil {
		p.dataSource(path.Child("dataSource"), d.APIGroup, d.Kind, d.Name)
	}
	ref := s.DataSourceRef
	if ref == nil {
		return
	}
	at := path.Child("dataSourceRef")
	p.dataSource(at, ref.APIGroup, ref.Kind, ref.Name)
	foreign := ref.Namespace != nil && *ref.Namespace != ""
	if foreign {
		p.invalid(at.Child("namespace"), *ref.Namespace, apivalidation.ValidateNamespaceName(*ref.Namespace, false)...)
	}
	switch d := s.DataSource; {
	case d == nil:
	case foreign:
		p.invalid(path, path.Child("dataSource"), "may not be specified when dataSourceRef.namespace is specified")
	case !equality.Semantic.DeepEqual(d.APIGroup, ref.APIGroup) || d.Kind != ref.Kind || d.Name != ref.Name:
		p.invalid(path, path.Child("dataSource"), "must match dataSourceRef")
	}
}

func (p *problems) dataSource(path *field.Path, group *string, kind, name string) {
	p.nonEmpty(path.Child("name"), name)
	p.nonEmpty(path.Child("kind"), kind)
	if group == nil || *group == "" {
		if kind != "PersistentVolumeClaim" {
			p.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
		}
		return
	}
	p.invalid(path.Child("apiGroup"), *group, validation.IsDNS1123Subdomain(*group)...)
}

var volumeAccessModes = []corev1.PersistentVolumeAccessMode{
	corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod,
}

func (p *problems) accessModes(path *field.Path, modes []corev1.PersistentVolumeAccessMode) {
	var alone, other bool
	for _, m := range modes {
		known := slices.Contains(volumeAccessModes, m)
		if !known {
			p.add(field.NotSupported(path, m, volumeAccessModes))
		}
		alone = alone || m == corev1.ReadWriteOncePod
		other = other || known && m != corev1.ReadWriteOncePod
	}
	if alone && other {
		p.forbidden(path, "may not use ReadWriteOncePod with other access modes")
	}
}

// className checks the name of a class, if one is given.
func (p *problems) className(path *field.Path, name *string) {
	if name != nil && *name != "" {
		p.invalid(path, *name, apivalidation.NameIsDNSSubdomain(*name, false)...)
	}
}

func validateClaimUpdate(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	p, path := &problems{}, field.NewPath("spec")
	now, before := comparableClaims(p, c, old)
	if !equality.Semantic.DeepEqual(now, before) {
		p.forbidden(path, fmt.Sprintf("spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n%v", diff.Diff(before, now)))
	}
	size, was := c.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	actual := old.Status.Capacity[corev1.ResourceStorage]
	if size.Cmp(was) < 0 && size.Cmp(actual) <= 0 {
		p.forbidden(path.Child("resources", "requests", "storage"), "field can not be less than status.capacity")
	}
	p.immutable(field.NewPath("volumeMode"), c.Spec.VolumeMode, old.Spec.VolumeMode)
	p.attributesClassKept(path.Child("volumeAttributesClassName"), c, old)
	return p.list
}

// comparableClaims returns the new and the old spec with what may change made
// equal: the volume once, the class once, and for bound claims the size and the
// attributes class.
func comparableClaims(p *problems, c, old *corev1.PersistentVolumeClaim) (now, before corev1.PersistentVolumeClaimSpec) {
	now, before = *c.Spec.DeepCopy(), *old.Spec.DeepCopy()
	normalizeDataSource(&before)
	if before.VolumeName == "" {
		before.VolumeName = now.VolumeName
	}
	wasClass, annotated := old.Annotations[corev1.BetaStorageClassAnnotation]
	isClass, still := c.Annotations[corev1.BetaStorageClassAnnotation]
	moved := before.StorageClassName == nil && now.StorageClassName != nil
	switch {
	case moved && annotated && *now.StorageClassName == wasClass && (!still || isClass == wasClass):
		now.StorageClassName = nil
	default:
		if isClass != wasClass {
			p.invalid(field.NewPath("metadata", "annotations", corev1.BetaStorageClassAnnotation), isClass, "field is immutable")
		}
		if moved && (!annotated || *now.StorageClassName == wasClass) {
			now.StorageClassName = nil
		}
	}
	if c.Status.Phase == corev1.ClaimBound {
		if now.Resources.Requests != nil {
			now.Resources.Requests[corev1.ResourceStorage] = before.Resources.Requests[corev1.ResourceStorage]
		}
		now.VolumeAttributesClassName = before.VolumeAttributesClassName
	}
	return now, before
}

// attributesClassKept checks that a class once applied is not taken away.
func (p *problems) attributesClassKept(path *field.Path, c, old *corev1.PersistentVolumeClaim) {
	name := c.Spec.VolumeAttributesClassName
	if old.Status.CurrentVolumeAttributesClassName == nil || equality.Semantic.DeepEqual(name, old.Spec.VolumeAttributesClassName) {
		return
	}
	switch {
	case name == nil:
		p.forbidden(path, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil")
	case *name == "":
		p.forbidden(path, "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil")
	}
}

var claimResizeStatuses = []corev1.ClaimResourceStatus{
	corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimControllerResizeInProgress,
	corev1.PersistentVolumeClaimNodeResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInProgress,
	corev1.PersistentVolumeClaimNodeResizePending,
}

func validateClaimStatus(c, _ *corev1.PersistentVolumeClaim) field.ErrorList {
	p, path := &problems{}, field.NewPath("status")
	if len(c.Spec.AccessModes) == 0 {
		p.required(field.NewPath("Spec", "accessModes"), "")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Status.Capacity)) {
		p.basicQuantity(path.Child("capacity").Key(string(name)), c.Status.Capacity[name])
	}
	statuses := path.Child("allocatedResourceStatuses")
	for _, name := range slices.Sorted(maps.Keys(c.Status.AllocatedResourceStatuses)) {
		p.claimResource(statuses, name)
		if !slices.Contains(claimResizeStatuses, c.Status.AllocatedResourceStatuses[name]) {
			p.add(field.NotSupported(statuses, name, claimResizeStatuses))
		}
	}
	allocated := path.Child("allocatedResources")
	for _, name := range slices.Sorted(maps.Keys(c.Status.AllocatedResources)) {
		if p.claimResource(allocated, name) {
			p.basicQuantity(allocated.Key(string(name)), c.Status.AllocatedResources[name])
		}
	}
	return p.list
}

// basicQuantity checks that a quantity is not negative.
func (p *problems) basicQuantity(path *field.Path, q resource.Quantity) {
	if q.Value() < 0 {
		p.invalid(path, q.Value(), "must be a valid resource quantity")
	}
}

// claimResource checks the name of a resource of a claim; the only native one is
// storage.
func (p *problems) claimResource(path *field.Path, name corev1.ResourceName) bool {
	if msgs := validation.IsQualifiedName(string(name)); len(msgs) > 0 {
		p.invalid(path, string(name), msgs...)
		return false
	}
	if isNative(name) && name != corev1.ResourceStorage {
		p.add(field.NotSupported(path, string(name), []corev1.ResourceName{corev1.ResourceStorage}))
		return false
	}
	return true
}

func claimSpecWarnings(path *field.Path, s *corev1.PersistentVolumeClaimSpec) []string {
	var out []string
	for _, r := range []struct {
		name string
		list corev1.ResourceList
	}{{"requests", s.Resources.Requests}, {"limits", s.Resources.Limits}} {
		if q := r.list[corev1.ResourceStorage]; q.MilliValue()%1000 != 0 {
			out = append(out, fmt.Sprintf("%s: fractional byte value %q is invalid, must be an integer",
				path.Child("resources", r.name).Key("storage"), q.String()))
		}
	}
	return out
}

// accessModeText is how tables show access modes.
func accessModeText(modes []corev1.PersistentVolumeAccessMode) string {
	var out []string
	for _, m := range []struct {
		mode corev1.PersistentVolumeAccessMode
		text string
	}{{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"}, {corev1.ReadWriteOncePod, "RWOP"}} {
		if slices.Contains(modes, m.mode) {
			out = append(out, m.text)
		}
	}
	return strings.Join(out, ",")
}

// unsetOr is what p points to, or "<unset>".
func unsetOr[T ~string](p *T) string {
	if p == nil {
		return "<unset>"
	}
	return string(*p)
}

func claimCells(c *corev1.PersistentVolumeClaim, now metav1.Time) []any {
	phase, capacity, modes := string(c.Status.Phase), "", ""
	if c.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	if c.Spec.VolumeName != "" {
		size := c.Status.Capacity[corev1.ResourceStorage]
		capacity, modes = size.String(), accessModeText(c.Status.AccessModes)
	}
	class, ok := c.Annotations[corev1.BetaStorageClassAnnotation]
	if !ok && c.Spec.StorageClassName != nil {
		class = *c.Spec.StorageClassName
	}
	return []any{c.Name, phase, c.Spec.VolumeName, capacity, modes, class, unsetOr(c.Spec.VolumeAttributesClassName),
		Age(c.CreationTimestamp, now), unsetOr(c.Spec.VolumeMode)}
}
