package kinds

import (
	"fmt"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// csiDriverKind counts generations by itself: from 0, not 1.
func csiDriverKind() *Kind {
	return &Kind{
		GVK:      storagev1.SchemeGroupVersion.WithKind("CSIDriver"),
		Resource: "csidrivers", Singular: "csidriver",
		NeedsRevision: true, DeleteReturnsObject: true,
		New: newOf[storagev1.CSIDriver], NewList: newOf[storagev1.CSIDriverList],
		Default:       each(defaultCSIDriver),
		PrepareCreate: each(func(d *storagev1.CSIDriver) { d.Spec.PreventPodSchedulingIfMissing = nil }),
		PrepareUpdate: eachPair(func(d, old *storagev1.CSIDriver) {
			if old.Spec.PreventPodSchedulingIfMissing == nil {
				d.Spec.PreventPodSchedulingIfMissing = nil
			}
			if !equality.Semantic.DeepEqual(d.Spec, old.Spec) {
				d.Generation = old.Generation + 1
			}
		}),
		Validate: check(validateCSIDriver),
		ValidateUpdate: checkPair(func(d, old *storagev1.CSIDriver) field.ErrorList {
			p := &problems{}
			p.immutable(field.NewPath("spec", "attachedRequired"), d.Spec.AttachRequired, old.Spec.AttachRequired)
			p.immutable(field.NewPath("spec", "volumeLifecycleModes"), d.Spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes)
			return p.list
		}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			booleanColumn("AttachRequired", "Whether volumes are attached to nodes first."),
			booleanColumn("PodInfoOnMount", "Whether the driver is told of the pod."),
			booleanColumn("StorageCapacity", "Whether the driver publishes its capacity."),
			column("TokenRequests", "Audiences of the tokens that the driver gets."),
			booleanColumn("RequiresRepublish", "Whether the driver is called again and again."),
			column("Modes", "Kinds of volumes that the driver makes."), ageColumn(),
		},
		Cells: cells(csiDriverCells),
	}
}

func defaultCSIDriver(d *storagev1.CSIDriver) {
	s := &d.Spec
	setDefault(&s.AttachRequired, true)
	setDefault(&s.PodInfoOnMount, false)
	setDefault(&s.StorageCapacity, false)
	setDefault(&s.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	if len(s.VolumeLifecycleModes) == 0 {
		s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
	setDefault(&s.RequiresRepublish, false)
	setDefault(&s.SELinuxMount, false)
}

func validateCSIDriver(d *storagev1.CSIDriver) field.ErrorList {
	p, s, path := &problems{}, &d.Spec, field.NewPath("spec")
	for _, b := range []struct {
		name  string
		value *bool
	}{{"attachedRequired", s.AttachRequired}, {"podInfoOnMount", s.PodInfoOnMount}, {"storageCapacity", s.StorageCapacity}, {"seLinuxMount", s.SELinuxMount}} {
		if b.value == nil {
			p.required(path.Child(b.name), "")
		}
	}
	if s.FSGroupPolicy != nil {
		oneOf(p, path.Child("fsGroupPolicy"), *s.FSGroupPolicy, storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	}
	p.tokenRequests(path.Child("tokenRequests"), s.TokenRequests)
	for _, m := range s.VolumeLifecycleModes {
		oneOf(p, path.Child("volumeLifecycleModes"), m, storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral)
	}
	if n := s.NodeAllocatableUpdatePeriodSeconds; n != nil && *n < 10 {
		p.invalid(path.Child("nodeAllocatableUpdatePeriodSeconds"), *n, "must be greater than or equal to 10 seconds")
	}
	if s.ServiceAccountTokenInSecrets != nil && len(s.TokenRequests) == 0 {
		p.invalid(path.Child("serviceAccountTokenInSecrets"), *s.ServiceAccountTokenInSecrets, "serviceAccountTokenInSecrets is set but no tokenRequests are specified")
	}
	return p.list
}

func (p *problems) tokenRequests(path *field.Path, requests []storagev1.TokenRequest) {
	audiences := seen{}
	for i, r := range requests {
		at := path.Index(i)
		if audiences.again(r.Audience) {
			p.duplicate(at.Child("audience"), r.Audience)
			continue
		}
		switch n := r.ExpirationSeconds; {
		case n == nil:
		case *n < 600:
			p.invalid(at.Child("expirationSeconds"), *n, "may not specify a duration less than 10 minutes")
		case *n > 1<<32:
			p.invalid(at.Child("expirationSeconds"), *n, "may not specify a duration larger than 2^32 seconds")
		}
	}
}

func csiDriverCells(d *storagev1.CSIDriver, now metav1.Time) []any {
	is := func(b *bool, otherwise bool) bool {
		if b == nil {
			return otherwise
		}
		return *b
	}
	var modes, audiences []string
	for _, m := range d.Spec.VolumeLifecycleModes {
		modes = append(modes, string(m))
	}
	tokens := "<unset>"
	if d.Spec.TokenRequests != nil {
		for _, r := range d.Spec.TokenRequests {
			audiences = append(audiences, r.Audience)
		}
		tokens = strings.Join(audiences, ",")
	}
	return []any{d.Name, is(d.Spec.AttachRequired, true), is(d.Spec.PodInfoOnMount, false), is(d.Spec.StorageCapacity, false), tokens,
		is(d.Spec.RequiresRepublish, false), orElse(strings.Join(modes, ","), "<none>"), Age(d.CreationTimestamp, now)}
}

func csiNodeKind() *Kind {
	return &Kind{
		GVK:      storagev1.SchemeGroupVersion.WithKind("CSINode"),
		Resource: "csinodes", Singular: "csinode",
		NeedsRevision: true, DeleteReturnsObject: true,
		New: newOf[storagev1.CSINode], NewList: newOf[storagev1.CSINodeList],
		Validate:       check(validateCSINode),
		ValidateUpdate: checkPair(validateCSINodeUpdate),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(), integerColumn("Drivers", "Drivers that run on the node."), ageColumn(),
		},
		Cells: cells(func(n *storagev1.CSINode, now metav1.Time) []any {
			return []any{n.Name, int64(len(n.Spec.Drivers)), Age(n.CreationTimestamp, now)}
		}),
	}
}

func validateCSINode(n *storagev1.CSINode) field.ErrorList {
	p, names := &problems{}, seen{}
	for i := range n.Spec.Drivers {
		path, d := field.NewPath("spec", "drivers").Index(i), &n.Spec.Drivers[i]
		p.csiDriverName(path.Child("name"), d.Name)
		if d.NodeID == "" {
			p.required(path.Child("nodeID"), "")
		} else if len(d.NodeID) > 256 {
			p.invalid(path.Child("nodeID"), d.NodeID, fmt.Sprintf("must be %d characters or less", 256))
		}
		if d.Allocatable != nil {
			p.nonNegativeIf(path.Child("allocatable", "count"), d.Allocatable.Count)
		}
		if names.again(d.Name) {
			p.duplicate(path.Child("name"), d.Name)
		}
		keys := seen{}
		for _, key := range d.TopologyKeys {
			p.nonEmpty(path, key)
			if keys.again(key) {
				p.duplicate(path, key)
			}
			p.invalid(path, key, validation.IsQualifiedName(key)...)
		}
	}
	return p.list
}

// validateCSINodeUpdate allows drivers to come and go, and their capacity to
// change.
func validateCSINodeUpdate(n, old *storagev1.CSINode) field.ErrorList {
	p := &problems{}
	for _, was := range old.Spec.Drivers {
		for _, now := range n.Spec.Drivers {
			if was.Name == now.Name {
				was.Allocatable, now.Allocatable = nil, nil
				p.immutable(field.NewPath("spec", "drivers"), now, was)
			}
		}
	}
	return p.list
}
