package kinds

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func storageClassKind() *Kind {
	return &Kind{
		GVK:      storagev1.SchemeGroupVersion.WithKind("StorageClass"),
		Resource: "storageclasses", Singular: "storageclass",
		ShortNames: []string{"sc"}, DeleteReturnsObject: true,
		New: newOf[storagev1.StorageClass], NewList: newOf[storagev1.StorageClassList],
		Default: each(func(c *storagev1.StorageClass) {
			setDefault(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
			setDefault(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
		}),
		ValidateCreate: check(validateStorageClass),
		ValidateUpdate: checkPair(func(c, old *storagev1.StorageClass) field.ErrorList {
			p := &problems{}
			p.immutable(field.NewPath("parameters"), c.Parameters, old.Parameters)
			p.immutable(field.NewPath("provisioner"), c.Provisioner, old.Provisioner)
			p.immutable(field.NewPath("reclaimPolicy"), c.ReclaimPolicy, old.ReclaimPolicy)
			p.immutable(field.NewPath("volumeBindingMode"), c.VolumeBindingMode, old.VolumeBindingMode)
			return p.list
		}),
		Warnings: warn(func(c, _ *storagev1.StorageClass) []string { return storageClassWarnings(c) }),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Provisioner", "What makes volumes of the class."), column("ReclaimPolicy", "What becomes of its volumes when they are released."),
			column("VolumeBindingMode", "When its volumes are made."), column("AllowVolumeExpansion", "Whether its volumes may grow."),
			ageColumn(),
		},
		Cells: cells(storageClassCells),
	}
}

const (
	maxClassParameters    = 512
	maxClassParameterSize = 256 << 10
)

func validateStorageClass(c *storagev1.StorageClass) field.ErrorList {
	p := &problems{}
	if at := field.NewPath("provisioner"); c.Provisioner == "" {
		p.required(at, "")
	} else {
		name := strings.ToLower(c.Provisioner)
		p.invalid(at, name, validation.IsQualifiedName(name)...)
	}
	p.classParameters(field.NewPath("parameters"), c.Parameters)
	if r := c.ReclaimPolicy; r != nil && *r != "" {
		oneOf(p, field.NewPath("reclaimPolicy"), *r, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)
	}
	if at := field.NewPath("volumeBindingMode"); c.VolumeBindingMode == nil {
		p.required(at, "")
	} else {
		oneOf(p, at, *c.VolumeBindingMode, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)
	}
	p.allowedTopologies(field.NewPath("allowedTopologies"), c.AllowedTopologies)
	return p.list
}

func (p *problems) classParameters(path *field.Path, params map[string]string) {
	if len(params) > maxClassParameters {
		p.add(field.TooLong(path, "", maxClassParameters))
		return
	}
	size := 0
	for k, v := range params {
		if k == "" {
			p.invalid(path, k, "field can not be empty.")
		}
		size += len(k) + len(v)
	}
	if size > maxClassParameterSize {
		p.add(field.TooLong(path, "", maxClassParameterSize))
	}
}

func (p *problems) allowedTopologies(path *field.Path, topologies []corev1.TopologySelectorTerm) {
	var before []map[string]map[string]bool
	for i, t := range topologies {
		expressions, keys := path.Index(i).Child("matchLabelExpressions"), map[string]map[string]bool{}
		for j, r := range t.MatchLabelExpressions {
			at, values := expressions.Index(j), map[string]bool{}
			if len(r.Values) == 0 {
				p.required(at.Child("values"), "")
			}
			for k, v := range r.Values {
				if values[v] {
					p.duplicate(at.Child("values").Index(k), v)
				}
				values[v] = true
			}
			p.add(metavalidation.ValidateLabelName(r.Key, at.Child("key"))...)
			if _, again := keys[r.Key]; again {
				p.duplicate(at.Child("key"), r.Key)
			}
			keys[r.Key] = values
		}
		for _, b := range before {
			if maps.EqualFunc(b, keys, maps.Equal) {
				p.duplicate(expressions, "")
			}
		}
		before = append(before, keys)
	}
}

func storageClassWarnings(c *storagev1.StorageClass) []string {
	var out []string
	for i, t := range c.AllowedTopologies {
		for j, r := range t.MatchLabelExpressions {
			if why, is := deprecatedNodeLabels[r.Key]; is {
				out = append(out, fmt.Sprintf("%s: %s", field.NewPath("allowedTopologies").Index(i).Child("matchLabelExpressions").Index(j).Child("key"), why))
			}
		}
	}
	return out
}

func storageClassCells(c *storagev1.StorageClass, now metav1.Time) []any {
	name, grows := c.Name, c.AllowVolumeExpansion != nil && *c.AllowVolumeExpansion
	if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" || c.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true" {
		name += " (default)"
	}
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	if c.ReclaimPolicy != nil {
		reclaim = *c.ReclaimPolicy
	}
	if c.VolumeBindingMode != nil {
		binding = *c.VolumeBindingMode
	}
	return []any{name, c.Provisioner, string(reclaim), string(binding), grows, Age(c.CreationTimestamp, now)}
}

func volumeAttachmentKind() *Kind {
	return &Kind{
		GVK:      storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"),
		Resource: "volumeattachments", Singular: "volumeattachment",
		HasStatus: true, NeedsRevision: true, DeleteReturnsObject: true,
		New: newOf[storagev1.VolumeAttachment], NewList: newOf[storagev1.VolumeAttachmentList],
		Validate: check(validateAttachment),
		ValidateUpdate: checkPair(func(a, old *storagev1.VolumeAttachment) field.ErrorList {
			p := &problems{}
			p.immutable(field.NewPath("spec"), a.Spec, old.Spec)
			return p.list
		}),
		ValidateStatus: checkPair(func(a, _ *storagev1.VolumeAttachment) field.ErrorList { return validateAttachment(a) }),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(), attacherColumn(), column("PV", "Volume to attach."), column("Node", "Node to attach it to."),
			booleanColumn("Attached", "Whether the volume is attached."), ageColumn(),
		},
		Cells: cells(func(a *storagev1.VolumeAttachment, now metav1.Time) []any {
			volume := ""
			if a.Spec.Source.PersistentVolumeName != nil {
				volume = *a.Spec.Source.PersistentVolumeName
			}
			return []any{a.Name, a.Spec.Attacher, volume, a.Spec.NodeName, a.Status.Attached, Age(a.CreationTimestamp, now)}
		}),
	}
}

func attacherColumn() metav1.TableColumnDefinition {
	c := column("Attacher", "Driver that attaches the volume.")
	c.Format = "name"
	return c
}

func validateAttachment(a *storagev1.VolumeAttachment) field.ErrorList {
	p, path := &problems{}, field.NewPath("spec")
	p.csiDriverName(path.Child("attacher"), a.Spec.Attacher)
	source, name := path.Child("source"), a.Spec.Source.PersistentVolumeName
	switch inline := a.Spec.Source.InlineVolumeSpec; {
	case inline == nil && name == nil:
		p.required(source, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
	case inline != nil && name != nil:
		p.forbidden(source, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
	case name != nil && *name == "":
		p.required(source.Child("persistentVolumeName"), "must specify non empty persistentVolumeName")
	case inline != nil:
		p.inlineVolume(source.Child("inlineVolumeSpec"), inline)
	}
	p.invalid(path.Child("nodeName"), a.Spec.NodeName, apivalidation.NameIsDNSSubdomain(a.Spec.NodeName, false)...)
	p.attachmentStatus(field.NewPath("status"), &a.Status)
	if name != nil {
		p.invalid(field.NewPath("spec.source.persistentVolumeName"), *name, apivalidation.NameIsDNSSubdomain(*name, false)...)
	}
	return p.list
}

// inlineVolume checks what is different in a volume without an object.
func (p *problems) inlineVolume(path *field.Path, s *corev1.PersistentVolumeSpec) {
	const inline = "may not be specified in the context of inline volumes"
	for name, set := range map[string]bool{
		"claimRef": s.ClaimRef != nil, "capacity": len(s.Capacity) > 0, "nodeAffinity": s.NodeAffinity != nil, "storageClassName": s.StorageClassName != "",
	} {
		if set {
			p.forbidden(path.Child(name), inline)
		}
	}
	if s.CSI == nil {
		p.required(path.Child("csi"), "has to be specified in the context of inline volumes")
	}
	if len(s.AccessModes) == 0 {
		p.required(path.Child("accessModes"), "")
	}
	p.accessModes(path.Child("accessModes"), s.AccessModes)
	if r := s.PersistentVolumeReclaimPolicy; r != "" && r != corev1.PersistentVolumeReclaimRetain {
		p.forbidden(path.Child("persistentVolumeReclaimPolicy"), "may only be Retain in the context of inline volumes")
	}
	p.volumeSource(path, "", s)
	if s.VolumeMode != nil && *s.VolumeMode != corev1.PersistentVolumeFilesystem {
		p.forbidden(path.Child("volumeMode"), "may not specify volumeMode other than Filesystem in the context of inline volumes")
	}
}

func (p *problems) attachmentStatus(path *field.Path, s *storagev1.VolumeAttachmentStatus) {
	size := 0
	for k, v := range s.AttachmentMetadata {
		size += len(k) + len(v)
	}
	if size > maxClassParameterSize {
		p.add(field.TooLong(path.Child("attachmentMetadata"), "", maxClassParameterSize))
	}
	for name, e := range map[string]*storagev1.VolumeError{"attachError": s.AttachError, "detachError": s.DetachError} {
		if e == nil {
			continue
		}
		if len(e.Message) > 1024 {
			p.add(field.TooLong(path.Child(name, "message"), "", maxClassParameterSize))
		}
		if e.ErrorCode != nil && *e.ErrorCode < 0 {
			p.invalid(path.Child(name, "errorCode"), *e.ErrorCode, validation.InclusiveRangeError(0, 1<<31-1))
		}
	}
}

func csiStorageCapacityKind() *Kind {
	return &Kind{
		GVK:      storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"),
		Resource: "csistoragecapacities", Singular: "csistoragecapacity",
		Namespaced: true, NeedsRevision: true,
		New: newOf[storagev1.CSIStorageCapacity], NewList: newOf[storagev1.CSIStorageCapacityList],
		Validate: check(func(c *storagev1.CSIStorageCapacity) field.ErrorList {
			p := &problems{}
			p.add(metavalidation.ValidateLabelSelector(c.NodeTopology, metavalidation.LabelSelectorValidationOptions{}, field.NewPath("nodeTopology"))...)
			p.invalid(field.NewPath("storageClassName"), c.StorageClassName, apivalidation.NameIsDNSSubdomain(c.StorageClassName, false)...)
			if c.Capacity != nil && c.Capacity.Sign() < 0 {
				p.invalid(field.NewPath("capacity"), c.Capacity.String(), "must be greater than or equal to 0")
			}
			return p.list
		}),
		ValidateUpdate: checkPair(func(c, old *storagev1.CSIStorageCapacity) field.ErrorList {
			p := &problems{}
			if !equality.Semantic.DeepEqual(c.NodeTopology, old.NodeTopology) {
				p.invalid(field.NewPath("nodeTopology"), c.NodeTopology, "field is immutable")
			}
			if c.StorageClassName != old.StorageClassName {
				p.invalid(field.NewPath("storageClassName"), c.StorageClassName, "field is immutable")
			}
			return p.list
		}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(), column("StorageClassName", "Class whose capacity this is."), column("Capacity", "Size of the largest volume that can be made."),
		},
		Cells: cells(func(c *storagev1.CSIStorageCapacity, _ metav1.Time) []any {
			size := "<unset>"
			if c.Capacity != nil {
				size = c.Capacity.String()
			}
			return []any{c.Name, c.StorageClassName, size}
		}),
	}
}
