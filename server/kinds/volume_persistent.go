package kinds

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const volumeFinalizer = "kubernetes.io/pv-protection"

func persistentVolumeKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("PersistentVolume"),
		Resource: "persistentvolumes", Singular: "persistentvolume",
		ShortNames: []string{"pv"},
		New:        newOf[corev1.PersistentVolume], NewList: newOf[corev1.PersistentVolumeList],
		HasStatus: true, DeleteReturnsObject: true,
		Default:        each(defaultVolumeObject),
		PrepareCreate:  each(prepareVolume),
		PrepareStatus:  eachPair(prepareVolumeStatus),
		Validate:       check(validateVolume),
		ValidateUpdate: checkPair(validateVolumeUpdate),
		Warnings:       warn(func(v, _ *corev1.PersistentVolume) []string { return volumeWarnings(v) }),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Capacity", "Size of the volume."), column("Access Modes", "How the volume may be mounted."),
			column("Reclaim Policy", "What becomes of the volume when it is released."), column("Status", "Phase of the volume."),
			column("Claim", "Claim that the volume is bound to."), column("StorageClass", "Class of the volume."),
			column("VolumeAttributesClass", "Attributes class of the volume."), column("Reason", "Why the volume is in its phase."),
			ageColumn(), wideColumn("VolumeMode", "Whether the volume is a file system or a raw device."),
		},
		Cells: cells(volumeCells),
	}
}

func defaultVolumeObject(v *corev1.PersistentVolume) {
	setEmpty(&v.Status.Phase, corev1.VolumePending)
	setEmpty(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	setDefault(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(v.Spec.Capacity)
	defaultVolumeSource(&v.Spec.PersistentVolumeSource)
}

func defaultVolumeSource(s *corev1.PersistentVolumeSource) {
	if s.HostPath != nil {
		setDefault(&s.HostPath.Type, corev1.HostPathUnset)
	}
	if s.ISCSI != nil {
		setEmpty(&s.ISCSI.ISCSIInterface, "default")
	}
	if s.RBD != nil {
		setEmpty(&s.RBD.RBDPool, "rbd")
		setEmpty(&s.RBD.RadosUser, "admin")
		setEmpty(&s.RBD.Keyring, "/etc/ceph/keyring")
	}
	if s.AzureDisk != nil {
		setDefault(&s.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		setDefault(&s.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
		setDefault(&s.AzureDisk.FSType, "ext4")
		setDefault(&s.AzureDisk.ReadOnly, false)
	}
	if s.ScaleIO != nil {
		setEmpty(&s.ScaleIO.StorageMode, "ThinProvisioned")
		setEmpty(&s.ScaleIO.FSType, "xfs")
	}
}

// prepareVolume takes the creation for the time of the first phase.
func prepareVolume(v *corev1.PersistentVolume) {
	created := v.CreationTimestamp
	v.Status.Phase, v.Status.LastPhaseTransitionTime = corev1.VolumePending, &created
	if !slices.Contains(v.Finalizers, volumeFinalizer) {
		v.Finalizers = append(slices.Clip(v.Finalizers), volumeFinalizer)
	}
}

func prepareVolumeStatus(v, old *corev1.PersistentVolume) {
	now, was := &v.Status, &old.Status
	switch {
	case now.Phase == was.Phase && now.LastPhaseTransitionTime == nil:
		now.LastPhaseTransitionTime = was.LastPhaseTransitionTime
	case now.Phase != was.Phase && (now.LastPhaseTransitionTime == nil || sameTime(now.LastPhaseTransitionTime, was.LastPhaseTransitionTime)):
		t := metav1.Now()
		now.LastPhaseTransitionTime = &t
	}
}

func validateVolume(v *corev1.PersistentVolume) field.ErrorList {
	p, s, at := &problems{}, &v.Spec, field.NewPath("spec")
	if len(s.AccessModes) == 0 {
		p.required(at.Child("accessModes"), "")
	}
	p.accessModes(at.Child("accessModes"), s.AccessModes)
	p.volumeCapacity(at.Child("capacity"), s.Capacity)
	if s.PersistentVolumeReclaimPolicy != "" {
		oneOf(p, at.Child("persistentVolumeReclaimPolicy"), s.PersistentVolumeReclaimPolicy,
			corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)
	}
	p.volumeAffinity(at.Child("nodeAffinity"), s.NodeAffinity)
	p.volumeSource(at, v.Name, s)
	if s.HostPath != nil && path.Clean(s.HostPath.Path) == "/" && s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		p.forbidden(at.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'")
	}
	p.className(at.Child("storageClassName"), &s.StorageClassName)
	if s.VolumeMode != nil {
		oneOf(p, at.Child("volumeMode"), *s.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	}
	if class := s.VolumeAttributesClassName; class != nil {
		if *class == "" {
			p.required(at.Child("volumeAttributesClassName"), "an empty string is disallowed")
		}
		p.className(at.Child("volumeAttributesClassName"), class)
		if s.CSI == nil {
			p.required(at.Child("csi"), "has to be specified when using volumeAttributesClassName")
		}
	}
	return p.list
}

func (p *problems) volumeCapacity(at *field.Path, capacity corev1.ResourceList) {
	if len(capacity) == 0 {
		p.required(at, "")
	}
	if _, ok := capacity[corev1.ResourceStorage]; !ok || len(capacity) > 1 {
		p.add(field.NotSupported(at, capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		q := capacity[name]
		p.basicQuantity(at.Key(string(name)), q)
		if q.Sign() <= 0 {
			p.invalid(at.Key(string(name)), q.String(), "must be greater than zero")
		}
	}
}

func (p *problems) volumeAffinity(at *field.Path, a *corev1.VolumeNodeAffinity) {
	if a == nil {
		return
	}
	if a.Required == nil {
		p.required(at.Child("required"), "must specify required node constraints")
		return
	}
	terms := at.Child("required", "nodeSelectorTerms")
	if len(a.Required.NodeSelectorTerms) == 0 {
		p.required(terms, "must have at least one node selector term")
	}
	c := &podChecker{}
	for i, t := range a.Required.NodeSelectorTerms {
		c.checkNodeTerm(t, terms.Index(i), true)
	}
	p.add(c.list...)
}

func validateVolumeUpdate(v, old *corev1.PersistentVolume) field.ErrorList {
	p, spec := &problems{}, field.NewPath("spec")
	now, was := v.Spec.PersistentVolumeSource, old.Spec.PersistentVolumeSource
	if now.CSI != nil && was.CSI != nil && was.CSI.ControllerExpandSecretRef == nil {
		csi := *now.CSI
		csi.ControllerExpandSecretRef = nil
		now.CSI = &csi
	}
	if !equality.Semantic.DeepEqual(now, was) {
		p.forbidden(spec.Child("persistentvolumesource"), fmt.Sprintf("spec.persistentvolumesource is immutable after creation\n%v", diff.Diff(was, now)))
	}
	p.immutable(field.NewPath("volumeMode"), v.Spec.VolumeMode, old.Spec.VolumeMode)
	if old.Spec.NodeAffinity != nil && !equality.Semantic.DeepEqual(v.Spec.NodeAffinity, withLabelsOf(old.Spec.NodeAffinity, v.Spec.NodeAffinity)) {
		p.invalid(field.NewPath("nodeAffinity"), v.Spec.NodeAffinity, "field is immutable, except for updating from beta label to GA")
	}
	if old.Spec.VolumeAttributesClassName != nil && v.Spec.VolumeAttributesClassName == nil {
		p.forbidden(spec.Child("volumeAttributesClassName"), "update from non-nil value to nil is forbidden")
	}
	return p.list
}

// stableLabels are the names that took the place of others on nodes.
var stableLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	"beta.kubernetes.io/os": corev1.LabelOSStable, "beta.kubernetes.io/arch": corev1.LabelArchStable,
	corev1.LabelInstanceType: corev1.LabelInstanceTypeStable,
}

// withLabelsOf returns a copy of old that uses today's names of labels where now
// does.
func withLabelsOf(old, now *corev1.VolumeNodeAffinity) *corev1.VolumeNodeAffinity {
	out := old.DeepCopy()
	if now == nil || now.Required == nil || out.Required == nil {
		return out
	}
	for i, t := range out.Required.NodeSelectorTerms {
		for j := range t.MatchExpressions {
			if i >= len(now.Required.NodeSelectorTerms) || j >= len(now.Required.NodeSelectorTerms[i].MatchExpressions) {
				return out
			}
			key := now.Required.NodeSelectorTerms[i].MatchExpressions[j].Key
			if stableLabels[t.MatchExpressions[j].Key] == key {
				t.MatchExpressions[j].Key = key
			}
		}
	}
	return out
}

func volumeWarnings(v *corev1.PersistentVolume) []string {
	var out []string
	for _, w := range []struct {
		shown bool
		text  string
	}{
		{v.Annotations[corev1.BetaStorageClassAnnotation] != "", `metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead`},
		{v.Annotations["volume.beta.kubernetes.io/mount-options"] != "", `metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use "mountOptions" attribute instead`},
		{v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle, "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."},
		{v.Spec.CephFS != nil, "spec.cephfs: deprecated in v1.28, non-functional in v1.31+"},
		{v.Spec.PhotonPersistentDisk != nil, "spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+"},
		{v.Spec.ScaleIO != nil, "spec.scaleIO: deprecated in v1.16, non-functional in v1.22+"},
		{v.Spec.StorageOS != nil, "spec.storageOS: deprecated in v1.22, non-functional in v1.25+"},
		{v.Spec.Glusterfs != nil, "spec.glusterfs: deprecated in v1.25, non-functional in v1.26+"},
		{v.Spec.RBD != nil, "spec.rbd: deprecated in v1.28, non-functional in v1.31+"},
	} {
		if w.shown {
			out = append(out, w.text)
		}
	}
	if a := v.Spec.NodeAffinity; a != nil && a.Required != nil {
		w := &podWarner{}
		for i, t := range a.Required.NodeSelectorTerms {
			w.nodeTerm(t, field.NewPath("spec", "nodeAffinity", "required", "nodeSelectorTerms").Index(i))
		}
		out = append(out, w.list...)
	}
	return out
}

func volumeCells(v *corev1.PersistentVolume, now metav1.Time) []any {
	size, phase, claim := v.Spec.Capacity[corev1.ResourceStorage], string(v.Status.Phase), ""
	if v.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	if ref := v.Spec.ClaimRef; ref != nil {
		claim = strings.Join([]string{ref.Namespace, ref.Name}, "/")
	}
	class, ok := v.Annotations[corev1.BetaStorageClassAnnotation]
	if !ok {
		class = v.Spec.StorageClassName
	}
	return []any{v.Name, size.String(), accessModeText(v.Spec.AccessModes), string(v.Spec.PersistentVolumeReclaimPolicy), phase, claim, class,
		unsetOr(v.Spec.VolumeAttributesClassName), v.Status.Reason, Age(v.CreationTimestamp, now), unsetOr(v.Spec.VolumeMode)}
}
