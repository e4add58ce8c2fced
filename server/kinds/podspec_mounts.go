package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *podChecker) checkMounts(ctr *corev1.Container, path *field.Path) {
	devices, devicePaths := map[string]bool{}, map[string]bool{}
	for _, d := range ctr.VolumeDevices {
		devices[d.Name], devicePaths[d.DevicePath] = true, true
	}
	points := seen{}
	for i, m := range ctr.VolumeMounts {
		at := path.Index(i)
		c.nonEmpty(at.Child("name"), m.Name)
		if c.volumes[m.Name] == nil {
			c.add(field.NotFound(at.Child("name"), m.Name))
		}
		c.nonEmpty(at.Child("mountPath"), m.MountPath)
		if points.again(m.MountPath) {
			c.invalid(at.Child("mountPath"), m.MountPath, "must be unique")
		}
		if devices[m.Name] {
			c.invalid(at.Child("name"), m.Name, "must not already exist in volumeDevices")
		}
		if devicePaths[m.MountPath] {
			c.invalid(at.Child("mountPath"), m.MountPath, "must not already exist as a path in volumeDevices")
		}
		c.checkSubPath(m, at, path)
		c.checkPropagation(m, ctr, path.Child("mountPropagation"))
		c.checkRecursion(m, path.Child("recursiveReadOnly"))
	}
}

// checkSubPath is given the path of the mount and that of all: some errors have
// ever been reported of the list.
func (c *podChecker) checkSubPath(m corev1.VolumeMount, at, list *field.Path) {
	if m.SubPath != "" {
		c.checkDescending(list.Child("subPath"), m.SubPath)
	}
	if m.SubPathExpr == "" {
		return
	}
	if m.SubPath != "" {
		c.invalid(at.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive")
	}
	c.checkDescending(list.Child("subPathExpr"), m.SubPathExpr)
}

func (c *podChecker) checkPropagation(m corev1.VolumeMount, ctr *corev1.Container, path *field.Path) {
	if m.MountPropagation == nil {
		return
	}
	oneOf(&c.problems, path, *m.MountPropagation,
		corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
	privileged := ctr.SecurityContext != nil && ctr.SecurityContext.Privileged != nil && *ctr.SecurityContext.Privileged
	if *m.MountPropagation == corev1.MountPropagationBidirectional && !privileged {
		c.forbidden(path, "Bidirectional mount propagation is available only to privileged containers")
	}
}

func (c *podChecker) checkRecursion(m corev1.VolumeMount, path *field.Path) {
	if m.RecursiveReadOnly == nil || *m.RecursiveReadOnly == corev1.RecursiveReadOnlyDisabled {
		return
	}
	before := len(c.list)
	oneOf(&c.problems, path, *m.RecursiveReadOnly,
		corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible)
	if len(c.list) > before {
		return
	}
	if !m.ReadOnly {
		c.forbidden(path, "may only be specified when readOnly is true")
	}
	if m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone {
		c.forbidden(path, "may only be specified when mountPropagation is None or not specified")
	}
}

func (c *podChecker) checkDevices(ctr *corev1.Container, path *field.Path) {
	mounts, mountPaths := map[string]bool{}, map[string]bool{}
	for _, m := range ctr.VolumeMounts {
		mounts[m.Name], mountPaths[m.MountPath] = true, true
	}
	names, paths := seen{}, seen{}
	for i, d := range ctr.VolumeDevices {
		at := path.Index(i)
		c.nonEmpty(at.Child("name"), d.Name)
		if d.Name != "" && names.again(d.Name) {
			c.invalid(at.Child("name"), d.Name, "must be unique")
		}
		if v := c.volumes[d.Name]; v == nil {
			c.add(field.NotFound(at.Child("name"), d.Name))
		} else if v.PersistentVolumeClaim == nil && v.Ephemeral == nil {
			c.invalid(at.Child("name"), d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		c.checkDevicePath(d.DevicePath, at.Child("devicePath"), paths)
		if mounts[d.Name] {
			c.invalid(at.Child("name"), d.Name, "must not already exist in volumeMounts")
		}
		if mountPaths[d.DevicePath] {
			c.invalid(at.Child("devicePath"), d.DevicePath, "must not already exist as a path in volumeMounts")
		}
	}
}

func (c *podChecker) checkDevicePath(device string, at *field.Path, paths seen) {
	c.nonEmpty(at, device)
	if paths[device] {
		c.invalid(at, device, "must be unique")
	}
	steps := podChecker{}
	if steps.checkNoBacksteps(at, device); len(steps.list) > 0 {
		c.invalid(at, device, "can not contain backsteps ('..')")
		return
	}
	paths[device] = true
}
