package kinds

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func statefulSetKind() *Kind {
	return &Kind{
		GVK:      appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		Resource: "statefulsets", Singular: "statefulset",
		ShortNames: []string{"sts"}, Categories: []string{"all"},
		Namespaced: true,
		New:        newOf[appsv1.StatefulSet], NewList: newOf[appsv1.StatefulSetList],
		ValidName: apivalidation.NameIsDNSLabel,
		HasStatus: true, HasGeneration: true,
		Scale: &Scale{
			Get: func(obj runtime.Object) (int32, int32, string) {
				s := obj.(*appsv1.StatefulSet)
				return replicasOf(s.Spec.Replicas), s.Status.Replicas, selectorText(s.Spec.Selector)
			},
			Set: func(obj runtime.Object, n int32) { obj.(*appsv1.StatefulSet).Spec.Replicas = &n },
		},
		Default:        each(defaultStatefulSet),
		PrepareCreate:  each(func(s *appsv1.StatefulSet) { dropMaxUnavailable(s, nil) }),
		PrepareUpdate:  eachPair(dropMaxUnavailable),
		Validate:       check(validateStatefulSet),
		ValidateCreate: check(validateStatefulSetCreate),
		ValidateUpdate: checkPair(validateStatefulSetUpdate),
		ValidateStatus: checkPair(validateStatefulSetStatus),
		Warnings:       warn(statefulSetWarnings),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(), column("Ready", "Ready pods of those wanted."), ageColumn(), containersColumn(), imagesColumn(),
		},
		Cells: cells(func(s *appsv1.StatefulSet, now metav1.Time) []any {
			names, images := containerCells(s.Spec.Template.Spec.Containers)
			return []any{s.Name, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, replicasOf(s.Spec.Replicas)),
				Age(s.CreationTimestamp, now), names, images}
		}),
	}
}

func defaultStatefulSet(set *appsv1.StatefulSet) {
	s := &set.Spec
	setEmpty(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		setDefault(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if r := s.UpdateStrategy.RollingUpdate; r != nil && s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		setDefault(&r.Partition, 0)
	}
	setDefault(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	setEmpty(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setEmpty(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setDefault(&s.Replicas, 1)
	setDefault(&s.RevisionHistoryLimit, 10)
	defaultPodSpec(&s.Template.Spec)
	for i := range s.VolumeClaimTemplates {
		claim := &s.VolumeClaimTemplates[i]
		claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
		defaultClaim(claim)
	}
}

// dropMaxUnavailable drops a field whose feature is off, unless old uses it.
func dropMaxUnavailable(set, old *appsv1.StatefulSet) {
	if old != nil && old.Spec.UpdateStrategy.RollingUpdate != nil && old.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable != nil {
		return
	}
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil {
		r.MaxUnavailable = nil
	}
}

func validateStatefulSet(set *appsv1.StatefulSet) field.ErrorList {
	p, s, path := &problems{}, &set.Spec, field.NewPath("spec")
	p.podManagement(path.Child("podManagementPolicy"), s.PodManagementPolicy)
	p.statefulStrategy(path.Child("updateStrategy"), &s.UpdateStrategy)
	if r := s.PersistentVolumeClaimRetentionPolicy; r != nil {
		retention, keep, drop := path.Child("persistentVolumeClaimRetentionPolicy"),
			appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType
		oneOf(p, retention.Child("whenDeleted"), r.WhenDeleted, keep, drop)
		oneOf(p, retention.Child("whenScaled"), r.WhenScaled, keep, drop)
	}
	p.nonNegative(path.Child("replicas"), int64(replicasOf(s.Replicas)))
	p.nonNegative(path.Child("minReadySeconds"), int64(s.MinReadySeconds))
	if s.Ordinals != nil {
		p.nonNegative(path.Child("ordinals.start"), int64(s.Ordinals.Start))
	}
	p.ownSelector(path.Child("selector"), s.Selector, "statefulset")
	p.statefulTemplate(path, s)
	p.runsForever(path.Child("template"), &s.Template, "StatefulSet")
	return p.list
}

func (p *problems) podManagement(path *field.Path, policy appsv1.PodManagementPolicyType) {
	switch policy {
	case "":
		p.required(path, "")
	case appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement:
	default:
		p.invalid(path, policy, "must be 'OrderedReady' or 'Parallel'")
	}
}

func (p *problems) statefulStrategy(path *field.Path, u *appsv1.StatefulSetUpdateStrategy) {
	switch u.Type {
	case "":
		p.required(path, "")
	case appsv1.OnDeleteStatefulSetStrategyType:
		if u.RollingUpdate != nil {
			p.invalid(path.Child("rollingUpdate"), badStatefulRolling(u.RollingUpdate), "only allowed for updateStrategy 'RollingUpdate'")
		}
	case appsv1.RollingUpdateStatefulSetStrategyType:
		if u.RollingUpdate != nil {
			p.statefulRolling(path.Child("rollingUpdate"), u.RollingUpdate)
		}
	default:
		bad := badStrategy[appsv1.StatefulSetUpdateStrategyType]{Type: u.Type}
		if u.RollingUpdate != nil {
			bad.RollingUpdate = badStatefulRolling(u.RollingUpdate)
		}
		p.invalid(path, bad, "must be 'RollingUpdate' or 'OnDelete'")
	}
}

func (p *problems) statefulRolling(path *field.Path, r *appsv1.RollingUpdateStatefulSetStrategy) {
	p.nonNegativeIf(path.Child("partition"), r.Partition)
	if r.MaxUnavailable == nil {
		return
	}
	unavailable := path.Child("maxUnavailable")
	p.intOrPercent(unavailable, *r.MaxUnavailable)
	if amountOf(*r.MaxUnavailable) == 0 {
		p.invalid(unavailable, *r.MaxUnavailable, "cannot be 0")
	}
	p.atMostAll(unavailable, *r.MaxUnavailable)
}

func badStatefulRolling(r *appsv1.RollingUpdateStatefulSetStrategy) any {
	return struct {
		Partition      int32
		MaxUnavailable *intstr.IntOrString
	}{replicasOf(r.Partition), r.MaxUnavailable}
}

// statefulTemplate checks the template as the pods will have it: with the
// volumes of the claims, and with the host name and subdomain that the
// controller sets.
func (p *problems) statefulTemplate(path *field.Path, s *appsv1.StatefulSetSpec) {
	template, t := path.Child("template"), s.Template.DeepCopy()
	if !p.matchesTemplate(template, s.Selector, t) {
		p.invalid(path.Child("selector"), s.Selector, "")
		return
	}
	t.Spec.Subdomain, t.Spec.Hostname = "", ""
	t.Spec.Volumes = withClaimVolumes(t.Spec.Volumes, s.VolumeClaimTemplates)
	p.add(validatePodTemplate(t, template)...)
	p.add(metavalidation.ValidateLabels(t.Labels, template.Child("labels"))...)
	p.add(apivalidation.ValidateAnnotations(t.Annotations, template.Child("annotations"))...)
}

func withClaimVolumes(volumes []corev1.Volume, claims []corev1.PersistentVolumeClaim) []corev1.Volume {
	if len(claims) == 0 {
		return volumes
	}
	byName := map[string]corev1.Volume{}
	for _, c := range claims {
		byName[c.Name] = corev1.Volume{Name: c.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name},
		}}
	}
	var all []corev1.Volume
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	for _, v := range volumes {
		if _, claimed := byName[v.Name]; !claimed {
			all = append(all, v)
		}
	}
	return all
}

// validateStatefulSetCreate checks what cannot change later.
func validateStatefulSetCreate(set *appsv1.StatefulSet) field.ErrorList {
	p, s, path := &problems{}, &set.Spec, field.NewPath("spec")
	for i := range s.VolumeClaimTemplates {
		p.claimSpec(path.Child("volumeClaimTemplates").Index(i).Child("spec"), &s.VolumeClaimTemplates[i].Spec)
	}
	if s.ServiceName != "" {
		p.invalid(path.Child("serviceName"), s.ServiceName, validation.IsDNS1123Label(s.ServiceName)...)
	}
	return p.list
}

func validateStatefulSetUpdate(set, old *appsv1.StatefulSet) field.ErrorList {
	p, s := &problems{}, set.Spec
	s.Replicas, s.Template, s.UpdateStrategy = old.Spec.Replicas, old.Spec.Template, old.Spec.UpdateStrategy
	s.MinReadySeconds, s.Ordinals = old.Spec.MinReadySeconds, old.Spec.Ordinals
	s.RevisionHistoryLimit = old.Spec.RevisionHistoryLimit
	s.PersistentVolumeClaimRetentionPolicy = old.Spec.PersistentVolumeClaimRetentionPolicy
	if !equality.Semantic.DeepEqual(s, old.Spec) {
		p.forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")
	}
	return p.list
}

func validateStatefulSetStatus(set, old *appsv1.StatefulSet) field.ErrorList {
	p, s, path := &problems{}, &set.Status, field.NewPath("status")
	ready, current := count{"readyReplicas", int64(s.ReadyReplicas)}, count{"currentReplicas", int64(s.CurrentReplicas)}
	updated, available := count{"updatedReplicas", int64(s.UpdatedReplicas)}, count{"availableReplicas", int64(s.AvailableReplicas)}
	p.statusCounts(path, count{"replicas", int64(s.Replicas)}, ready, current, updated, available,
		count{"observedGeneration", s.ObservedGeneration}, count{"collisionCount", int64(replicasOf(s.CollisionCount))})
	p.atMost(path, s.Replicas, moreThanReplicas, ready, current, updated, available)
	p.atMost(path, s.ReadyReplicas, "cannot be greater than status.readyReplicas", available)
	p.notDecremented(s.CollisionCount, old.Status.CollisionCount)
	return p.list
}

func statefulSetWarnings(set, old *appsv1.StatefulSet) []string {
	var out []string
	if old == nil || !equality.Semantic.DeepEqual(set.Spec, old.Spec) {
		out = podTemplateWarnings(&set.Spec.Template, field.NewPath("spec", "template"))
	}
	path := field.NewPath("spec", "volumeClaimTemplates")
	for i := range set.Spec.VolumeClaimTemplates {
		at := path.Index(i)
		if old != nil {
			at = at.Child("Spec")
		}
		out = append(out, claimSpecWarnings(at, &set.Spec.VolumeClaimTemplates[i].Spec)...)
	}
	if replicasOf(set.Spec.RevisionHistoryLimit) < 0 {
		out = append(out, "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
	}
	return out
}
