package kinds

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// hostUsers reports whether the pod's users are those of the host.
func (c *podChecker) hostUsers() bool { return c.spec.HostUsers == nil || *c.spec.HostUsers }

// checkHostNamespaces checks which namespaces of the host go together.
func (c *podChecker) checkHostNamespaces() {
	if s := c.spec.ShareProcessNamespace; s != nil && *s && c.spec.HostPID {
		c.invalid(c.path.Child("shareProcessNamespace"), *s, "ShareProcessNamespace and HostPID cannot both be enabled")
	}
	c.checkHostProcess()
	if c.hostUsers() {
		return
	}
	const why = "when `hostUsers` is false"
	for _, f := range []struct {
		name string
		set  bool
	}{{"hostNetwork", c.spec.HostNetwork}, {"HostPID", c.spec.HostPID}, {"HostIPC", c.spec.HostIPC}} {
		if f.set {
			c.forbidden(c.path.Child(f.name), why)
		}
	}
	c.eachContainer(func(ctr *corev1.Container, path *field.Path) {
		if len(ctr.VolumeDevices) > 0 {
			c.forbidden(path.Child("volumeDevices"), why)
		}
	})
}

// checkHostProcess checks Windows containers that run on the host: all or none.
func (c *podChecker) checkHostProcess() {
	var ofPod *bool
	if s := c.spec.SecurityContext; s != nil && s.WindowsOptions != nil {
		ofPod = s.WindowsOptions.HostProcess
	}
	all, onHost := 0, 0
	c.eachContainer(func(ctr *corev1.Container, path *field.Path) {
		all++
		own := ofPod
		if s := ctr.SecurityContext; s != nil && s.WindowsOptions != nil && s.WindowsOptions.HostProcess != nil {
			own = s.WindowsOptions.HostProcess
		}
		if ofPod != nil && *ofPod != *own {
			c.invalid(path.Child("securityContext", "windowsOptions", "hostProcess"), *own,
				fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", *ofPod))
		}
		if own != nil && *own {
			onHost++
		}
	})
	if onHost == 0 {
		return
	}
	if onHost != all {
		c.invalid(c.path, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers")
	}
	if !c.spec.HostNetwork {
		c.invalid(c.path.Child("hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers")
	}
}

// checkOS forbids what the named operating system does not have.
func (c *podChecker) checkOS() {
	if c.spec.OS == nil {
		return
	}
	path := c.path.Child("os")
	switch c.spec.OS.Name {
	case corev1.Linux:
		c.checkLinuxPod()
	case corev1.Windows:
		c.checkWindowsPod()
	case "":
		c.required(path.Child("name"), "")
	default:
		c.add(field.NotSupported(path, c.spec.OS.Name, []corev1.OSName{corev1.Linux, corev1.Windows}))
	}
}

func (c *podChecker) checkLinuxPod() {
	const why = "windows options cannot be set for a linux pod"
	if s := c.spec.SecurityContext; s != nil && s.WindowsOptions != nil {
		c.forbidden(c.path.Child("securityContext", "windowsOptions"), why)
	}
	c.eachContainer(func(ctr *corev1.Container, path *field.Path) {
		if s := ctr.SecurityContext; s != nil && s.WindowsOptions != nil {
			c.forbidden(path.Child("securityContext", "windowsOptions"), why)
		}
	})
}

// given is a field and whether it is set.
type given struct {
	name string
	set  bool
}

func (c *podChecker) checkWindowsPod() {
	forbid := func(path *field.Path, fields ...given) {
		for _, f := range fields {
			if f.set {
				c.forbidden(path.Child(f.name), "cannot be set for a windows pod")
			}
		}
	}
	if s := c.spec.SecurityContext; s != nil {
		forbid(c.path.Child("securityContext"),
			given{"appArmorProfile", s.AppArmorProfile != nil}, given{"seLinuxOptions", s.SELinuxOptions != nil},
			given{"seccompProfile", s.SeccompProfile != nil}, given{"fsGroup", s.FSGroup != nil},
			given{"fsGroupChangePolicy", s.FSGroupChangePolicy != nil}, given{"sysctls", len(s.Sysctls) > 0},
			given{"runAsUser", s.RunAsUser != nil}, given{"runAsGroup", s.RunAsGroup != nil},
			given{"supplementalGroups", s.SupplementalGroups != nil},
			given{"supplementalGroupsPolicy", s.SupplementalGroupsPolicy != nil},
			given{"seLinuxChangePolicy", s.SELinuxChangePolicy != nil})
	}
	forbid(c.path, given{"hostUsers", c.spec.HostUsers != nil}, given{"hostPID", c.spec.HostPID},
		given{"hostIPC", c.spec.HostIPC}, given{"shareProcessNamespace", c.spec.ShareProcessNamespace != nil})
	c.eachContainer(func(ctr *corev1.Container, path *field.Path) {
		s := ctr.SecurityContext
		if s == nil {
			return
		}
		forbid(path.Child("securityContext"),
			given{"appArmorProfile", s.AppArmorProfile != nil}, given{"seLinuxOptions", s.SELinuxOptions != nil},
			given{"seccompProfile", s.SeccompProfile != nil}, given{"capabilities", s.Capabilities != nil},
			given{"readOnlyRootFilesystem", s.ReadOnlyRootFilesystem != nil}, given{"privileged", s.Privileged != nil},
			given{"allowPrivilegeEscalation", s.AllowPrivilegeEscalation != nil}, given{"procMount", s.ProcMount != nil},
			given{"runAsUser", s.RunAsUser != nil}, given{"runAsGroup", s.RunAsGroup != nil})
	})
}
