package kinds

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkSecurity checks the security context of a container.
func (c *podChecker) checkSecurity(s *corev1.SecurityContext, path *field.Path) {
	if s == nil {
		return
	}
	c.checkIDs(s.RunAsUser, s.RunAsGroup, path)
	if s.ProcMount != nil {
		at := path.Child("procMount")
		oneOf(&c.problems, at, *s.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)
		if c.hostUsers() && *s.ProcMount == corev1.UnmaskedProcMount {
			c.invalid(at, s.ProcMount, "`hostUsers` must be false to use `Unmasked`")
		}
	}
	if s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation {
		if s.Privileged != nil && *s.Privileged {
			c.invalid(path, s, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
		}
		if s.Capabilities != nil && slices.Contains(s.Capabilities.Add, "CAP_SYS_ADMIN") {
			c.invalid(path, s, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
		}
	}
	c.checkSeccomp(s.SeccompProfile, path.Child("seccompProfile"))
	c.checkAppArmor(s.AppArmorProfile, path.Child("appArmorProfile"))
	c.checkWindows(s.WindowsOptions, path.Child("windowsOptions"))
}

func (c *podChecker) checkIDs(user, group *int64, path *field.Path) {
	if user != nil {
		c.invalid(path.Child("runAsUser"), *user, validation.IsValidUserID(*user)...)
	}
	c.checkGroup(group, path.Child("runAsGroup"))
}

func (c *podChecker) checkGroup(id *int64, path *field.Path) {
	if id != nil {
		c.invalid(path, *id, validation.IsValidGroupID(*id)...)
	}
}

// checkPodSecurity checks the security context of the pod.
func (c *podChecker) checkPodSecurity() {
	s, path := c.spec.SecurityContext, c.path.Child("securityContext")
	if s == nil {
		return
	}
	c.checkIDs(s.RunAsUser, s.RunAsGroup, path)
	c.checkGroup(s.FSGroup, path.Child("fsGroup"))
	for i := range s.SupplementalGroups {
		c.checkGroup(&s.SupplementalGroups[i], path.Child("supplementalGroups").Index(i))
	}
	c.checkSysctls(s.Sysctls, path.Child("sysctls"))
	if p := s.FSGroupChangePolicy; p != nil {
		oneOf(&c.problems, path.Child("fsGroupChangePolicy"), *p, corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)
	}
	if p := s.SupplementalGroupsPolicy; p != nil {
		oneOf(&c.problems, path.Child("supplementalGroupsPolicy"), *p, corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)
	}
	if p := s.SELinuxChangePolicy; p != nil {
		oneOf(&c.problems, path.Child("seLinuxChangePolicy"), *p, corev1.SELinuxChangePolicyMountOption, corev1.SELinuxChangePolicyRecursive)
	}
	c.checkSeccomp(s.SeccompProfile, path.Child("seccompProfile"))
	c.checkAppArmor(s.AppArmorProfile, path.Child("appArmorProfile"))
	c.checkWindows(s.WindowsOptions, path.Child("windowsOptions"))
}

const sysctlSegment = `[a-z0-9]([-_a-z0-9]*[a-z0-9])?`

var sysctlName = regexp.MustCompile(`^(` + sysctlSegment + `[\./])*` + sysctlSegment + `$`)

func (c *podChecker) checkSysctls(sysctls []corev1.Sysctl, path *field.Path) {
	names := seen{}
	for i, s := range sysctls {
		path := path.Index(i).Child("name")
		switch {
		case s.Name == "":
			c.required(path, "")
		case len(s.Name) > 253 || !sysctlName.MatchString(s.Name):
			c.invalid(path, s.Name, fmt.Sprintf("must have at most 253 characters and match regex %s", sysctlName))
		case names.again(s.Name):
			c.duplicate(path, s.Name)
		}
		name := strings.ReplaceAll(s.Name, "/", ".")
		if c.spec.HostNetwork && strings.HasPrefix(name, "net.") {
			c.invalid(path, s.Name, "may not be specified when 'hostNetwork' is true")
		}
		ipc := name == "kernel.sem" || strings.HasPrefix(name, "kernel.shm") || strings.HasPrefix(name, "kernel.msg") || strings.HasPrefix(name, "fs.mqueue.")
		if c.spec.HostIPC && ipc {
			c.invalid(path, s.Name, "may not be specified when 'hostIPC' is true")
		}
	}
}

func (c *podChecker) checkSeccomp(p *corev1.SeccompProfile, path *field.Path) {
	if p == nil {
		return
	}
	if p.Type == "" {
		c.required(path.Child("type"), "type is required when seccompProfile is set")
	} else {
		oneOf(&c.problems, path.Child("type"), p.Type,
			corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	}
	at := path.Child("localhostProfile")
	switch local := p.Type == corev1.SeccompProfileTypeLocalhost; {
	case local && p.LocalhostProfile == nil:
		c.required(at, "must be set when seccomp type is Localhost")
	case local:
		c.checkDescending(at, *p.LocalhostProfile)
	case p.LocalhostProfile != nil:
		c.invalid(at, p, "can only be set when seccomp type is Localhost")
	}
}

func (c *podChecker) checkAppArmor(p *corev1.AppArmorProfile, path *field.Path) {
	if p == nil {
		return
	}
	if p.Type == "" {
		c.required(path.Child("type"), "type is required when appArmorProfile is set")
		return
	}
	oneOf(&c.problems, path.Child("type"), p.Type,
		corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined)
	at := path.Child("localhostProfile")
	if p.Type != corev1.AppArmorProfileTypeLocalhost {
		if p.LocalhostProfile != nil {
			c.invalid(at, p.LocalhostProfile, "can only be set when AppArmor type is Localhost")
		}
		return
	}
	switch local := p.LocalhostProfile; {
	case local == nil || *local == "":
		c.required(at, "must be set when AppArmor type is Localhost")
	case strings.TrimSpace(*local) != *local:
		c.invalid(at, *local, "must not be padded with whitespace")
	case len(*local) > 4095:
		c.add(field.TooLong(at, "", 4095))
	}
}

const maxGMSASpecInKiB = 64

func (c *podChecker) checkWindows(o *corev1.WindowsSecurityContextOptions, path *field.Path) {
	if o == nil {
		return
	}
	if n := o.GMSACredentialSpecName; n != nil {
		c.invalid(path.Child("gmsaCredentialSpecName"), *n, validation.IsDNS1123Subdomain(*n)...)
	}
	if s := o.GMSACredentialSpec; s != nil && *s == "" {
		c.invalid(path.Child("gmsaCredentialSpec"), *s, "gmsaCredentialSpec cannot be an empty string")
	} else if s != nil && len(*s) > maxGMSASpecInKiB*1024 {
		c.invalid(path.Child("gmsaCredentialSpec"), *s, fmt.Sprintf("gmsaCredentialSpec size must be under %d KiB", maxGMSASpecInKiB))
	}
	if n := o.RunAsUserName; n != nil {
		if fault := windowsUserFault(*n); fault != "" {
			c.invalid(path.Child("runAsUserName"), *n, fault)
		}
	}
}

// windowsUserFault says what is wrong with a user, given as USER or DOMAIN\USER.
func windowsUserFault(name string) string {
	user := name[strings.LastIndex(name, `\`)+1:]
	switch {
	case name == "":
		return "runAsUserName cannot be an empty string"
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "runAsUserName cannot contain control characters"
	case strings.Count(name, `\`) > 1:
		return "runAsUserName cannot contain more than one backslash"
	case len(name)-len(user) > 256:
		return "runAsUserName's Domain length must be under 256 characters"
	case user == "":
		return "runAsUserName's User cannot be empty"
	case len(user) > 104:
		return "runAsUserName's User length must not be longer than 104 characters"
	case strings.Trim(user, ". ") == "":
		return "runAsUserName's User cannot contain only periods or spaces"
	case strings.ContainsAny(user, `"/\:;|=,+*?<>@[]`):
		return `runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]`
	}
	return ""
}
