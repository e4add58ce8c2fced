package kinds

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const deletionCost = "controller.kubernetes.io/pod-deletion-cost"

// checkAnnotations checks the annotations that once were, or still are, part of
// the spec.
func (c *podChecker) checkAnnotations(annotations map[string]string, path *field.Path) {
	if v, mirror := annotations[corev1.MirrorPodAnnotationKey]; mirror && c.spec.NodeName == "" {
		c.invalid(path.Key(corev1.MirrorPodAnnotationKey), v, "must set spec.nodeName if mirror pod annotation is set")
	}
	if v, has := annotations[deletionCost]; has && !isCost(v) {
		c.invalid(path.Key(deletionCost), v, "must be a 32bit integer")
	}
	for key, v := range annotations {
		switch {
		case key == corev1.SeccompPodAnnotationKey, strings.HasPrefix(key, corev1.SeccompContainerAnnotationKeyPrefix):
			c.checkSeccompAnnotation(v, path.Child(key))
		case strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix):
			c.checkAppArmorAnnotation(key, v, path.Key(key))
		}
	}
}

// isCost wants the shortest way to write a number: no plus, no leading zeros.
func isCost(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && strconv.FormatInt(n, 10) == s
}

func (c *podChecker) checkSeccompAnnotation(v string, path *field.Path) {
	local, isLocal := strings.CutPrefix(v, corev1.SeccompLocalhostProfileNamePrefix)
	switch {
	case v == corev1.SeccompProfileRuntimeDefault, v == corev1.DeprecatedSeccompProfileDockerDefault, v == corev1.SeccompProfileNameUnconfined:
	case isLocal:
		c.checkDescending(path, local)
	default:
		c.invalid(path, v, "must be a valid seccomp profile")
	}
}

func (c *podChecker) checkAppArmorAnnotation(key, v string, path *field.Path) {
	name := strings.TrimPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix)
	found := false
	for ctr := range containersOf(c.spec) {
		found = found || ctr.Name == name
	}
	if !found {
		c.invalid(path, name, "container not found")
	}
	switch {
	case v == "", v == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault, v == corev1.DeprecatedAppArmorBetaProfileNameUnconfined,
		strings.HasPrefix(v, corev1.DeprecatedAppArmorBetaProfileNamePrefix):
	default:
		c.invalid(path, v, "invalid AppArmor profile name: "+strconv.Quote(v))
	}
}

// checkProfilesAgree checks that a profile given both as an annotation and as a
// field is the same.
func (c *podChecker) checkProfilesAgree(annotations map[string]string) {
	var podArmor *corev1.AppArmorProfile
	if s := c.spec.SecurityContext; s != nil {
		podArmor = s.AppArmorProfile
		if v, has := annotations[corev1.SeccompPodAnnotationKey]; has && s.SeccompProfile != nil {
			c.checkSeccompAgrees(v, s.SeccompProfile, c.path.Child("securityContext", "seccompProfile"))
		}
	}
	windows := c.spec.OS != nil && c.spec.OS.Name == corev1.Windows
	c.eachContainer(func(ctr *corev1.Container, path *field.Path) {
		armor := podArmor
		if s := ctr.SecurityContext; s != nil {
			if v, has := annotations[corev1.SeccompContainerAnnotationKeyPrefix+ctr.Name]; has && s.SeccompProfile != nil {
				c.checkSeccompAgrees(v, s.SeccompProfile, path.Child("securityContext", "seccompProfile"))
			}
			if s.AppArmorProfile != nil {
				armor = s.AppArmorProfile
			}
		}
		v, has := annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+ctr.Name]
		if has && armor != nil && !windows {
			c.checkAppArmorAgrees(v, armor, path.Child("securityContext", "appArmorProfile"))
		}
	})
}

func (c *podChecker) checkSeccompAgrees(v string, p *corev1.SeccompProfile, path *field.Path) {
	local, isLocal := strings.CutPrefix(v, corev1.SeccompLocalhostProfileNamePrefix)
	same := true
	switch p.Type {
	case corev1.SeccompProfileTypeUnconfined:
		same = v == corev1.SeccompProfileNameUnconfined
	case corev1.SeccompProfileTypeRuntimeDefault:
		same = v == corev1.SeccompProfileRuntimeDefault || v == corev1.DeprecatedSeccompProfileDockerDefault
	case corev1.SeccompProfileTypeLocalhost:
		same = isLocal
	}
	if !same {
		c.forbidden(path.Child("type"), "seccomp type in annotation and field must match")
	} else if p.Type == corev1.SeccompProfileTypeLocalhost && (p.LocalhostProfile == nil || *p.LocalhostProfile != local) {
		c.forbidden(path.Child("localhostProfile"), "seccomp profile in annotation and field must match")
	}
}

func (c *podChecker) checkAppArmorAgrees(v string, p *corev1.AppArmorProfile, path *field.Path) {
	local, isLocal := strings.CutPrefix(v, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
	same := true
	switch p.Type {
	case corev1.AppArmorProfileTypeUnconfined:
		same = v == corev1.DeprecatedAppArmorBetaProfileNameUnconfined
	case corev1.AppArmorProfileTypeRuntimeDefault:
		same = v == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault
	case corev1.AppArmorProfileTypeLocalhost:
		same = isLocal
	}
	if !same {
		c.forbidden(path.Child("type"), "apparmor type in annotation and field must match")
	} else if p.Type == corev1.AppArmorProfileTypeLocalhost && (p.LocalhostProfile == nil || *p.LocalhostProfile != local) {
		c.forbidden(path.Child("localhostProfile"), "apparmor profile in annotation and field must match")
	}
}
