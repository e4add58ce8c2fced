package kinds

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// eachContainer calls f with every container and its path.
func (c *podChecker) eachContainer(f func(*corev1.Container, *field.Path)) {
	for i := range c.spec.InitContainers {
		f(&c.spec.InitContainers[i], c.path.Child("initContainers").Index(i))
	}
	for i := range c.spec.Containers {
		f(&c.spec.Containers[i], c.path.Child("containers").Index(i))
	}
	for i := range c.spec.EphemeralContainers {
		common := &c.spec.EphemeralContainers[i].EphemeralContainerCommon
		f((*corev1.Container)(common), c.path.Child("ephemeralContainers").Index(i))
	}
}

func (c *podChecker) checkContainers() {
	path := c.path.Child("containers")
	if len(c.spec.Containers) == 0 {
		c.required(path, "")
	}
	names, ports := seen{}, seen{}
	for i := range c.spec.Containers {
		ctr, path := &c.spec.Containers[i], path.Index(i)
		c.checkContainer(ctr, path)
		if names.again(ctr.Name) {
			c.duplicate(path.Child("name"), ctr.Name)
		}
		c.checkLifecycle(ctr.Lifecycle, path.Child("lifecycle"))
		c.checkProbes(ctr, path)
		c.checkContainerRestarts(ctr, path)
		c.checkHostPortConflicts(ctr, path, ports)
	}
}

func (c *podChecker) checkInitContainers() {
	names := seen{}
	for i := range c.spec.Containers {
		names[c.spec.Containers[i].Name] = true
	}
	for i := range c.spec.InitContainers {
		ctr, path := &c.spec.InitContainers[i], c.path.Child("initContainers").Index(i)
		c.checkContainer(ctr, path)
		c.checkContainerRestarts(ctr, path)
		if ctr.Name != "" && names.again(ctr.Name) {
			c.duplicate(path.Child("name"), ctr.Name)
		}
		// Init containers run one after another: only ports of one can collide.
		// Errors name the first container, whichever it is.
		c.checkHostPortConflicts(ctr, c.path.Child("initContainers").Index(0), seen{})
		if isSidecar(ctr) {
			c.checkLifecycle(ctr.Lifecycle, path.Child("lifecycle"))
			c.checkProbes(ctr, path)
			continue
		}
		c.forbidInInit(ctr, path)
	}
}

// forbidInInit forbids what only makes sense for a container that keeps running.
func (c *podChecker) forbidInInit(ctr *corev1.Container, path *field.Path) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"lifecycle", ctr.Lifecycle != nil},
		{"livenessProbe", ctr.LivenessProbe != nil},
		{"readinessProbe", ctr.ReadinessProbe != nil},
		{"startupProbe", ctr.StartupProbe != nil},
	} {
		if f.set {
			c.forbidden(path.Child(f.name), "may not be set for init containers without restartPolicy=Always")
		}
	}
}

// ephemeralFields are the fields an ephemeral container may set.
var ephemeralFields = map[string]bool{
	"Name": true, "Image": true, "Command": true, "Args": true, "WorkingDir": true,
	"EnvFrom": true, "Env": true, "VolumeMounts": true, "VolumeDevices": true,
	"TerminationMessagePath": true, "TerminationMessagePolicy": true, "ImagePullPolicy": true,
	"SecurityContext": true, "Stdin": true, "StdinOnce": true, "TTY": true,
}

func (c *podChecker) checkEphemeralContainers() {
	lasting, names := map[string]bool{}, seen{}
	for _, list := range [][]corev1.Container{c.spec.Containers, c.spec.InitContainers} {
		for i := range list {
			lasting[list[i].Name], names[list[i].Name] = true, true
		}
	}
	for i := range c.spec.EphemeralContainers {
		e, path := &c.spec.EphemeralContainers[i], c.path.Child("ephemeralContainers").Index(i)
		ctr := (*corev1.Container)(&e.EphemeralContainerCommon)
		c.checkContainer(ctr, path)
		c.checkImageSpaces(ctr, path)
		if names.again(e.Name) {
			c.duplicate(path.Child("name"), e.Name)
		}
		if e.TargetContainerName != "" && !lasting[e.TargetContainerName] {
			c.add(field.NotFound(path.Child("targetContainerName"), e.TargetContainerName))
		}
		c.checkEphemeralFields(e, path)
	}
}

func (c *podChecker) checkEphemeralFields(e *corev1.EphemeralContainer, path *field.Path) {
	const why = "cannot be set for an Ephemeral Container"
	v := reflect.ValueOf(e.EphemeralContainerCommon)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !ephemeralFields[name] && !v.Field(i).IsZero() {
			c.forbidden(path.Child(strings.ToLower(name[:1])+name[1:]), why)
		}
	}
	for i, m := range e.VolumeMounts {
		mount := path.Child("volumeMounts").Index(i)
		if m.SubPath != "" {
			c.forbidden(mount.Child("subPath"), why)
		}
		if m.SubPathExpr != "" {
			c.forbidden(mount.Child("subPathExpr"), why)
		}
	}
}

// checkContainer checks what containers of all sorts have in common.
func (c *podChecker) checkContainer(ctr *corev1.Container, path *field.Path) {
	c.named(path.Child("name"), ctr.Name, validation.IsDNS1123Label)
	c.nonEmpty(path.Child("image"), ctr.Image)
	chosen(&c.problems, path.Child("terminationMessagePolicy"), ctr.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	c.checkPullPolicy(ctr.ImagePullPolicy, path.Child("imagePullPolicy"))
	c.checkPorts(ctr.Ports, path.Child("ports"))
	c.checkEnv(ctr.Env, path.Child("env"))
	c.checkEnvFrom(ctr.EnvFrom, path.Child("envFrom"))
	c.checkMounts(ctr, path.Child("volumeMounts"))
	c.checkDevices(ctr, path.Child("volumeDevices"))
	c.checkRequirements(&ctr.Resources, path.Child("resources"), c.checkContainerResource)
	c.checkResizePolicy(ctr.ResizePolicy, path.Child("resizePolicy"))
	c.checkSecurity(ctr.SecurityContext, path.Child("securityContext"))
}

// checkImageSpaces is for pods only: templates may have been stored with spaces.
func (c *podChecker) checkImageSpaces(ctr *corev1.Container, path *field.Path) {
	if strings.TrimSpace(ctr.Image) != ctr.Image {
		c.invalid(path.Child("image"), ctr.Image, "must not have leading or trailing whitespace")
	}
}

func (c *podChecker) checkPullPolicy(policy corev1.PullPolicy, path *field.Path) {
	chosen(&c.problems, path, policy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
}

func (c *podChecker) checkPorts(ports []corev1.ContainerPort, path *field.Path) {
	names := seen{}
	for i, p := range ports {
		path := path.Index(i)
		if p.Name != "" {
			if faults := validation.IsValidPortName(p.Name); len(faults) > 0 {
				c.invalid(path.Child("name"), p.Name, faults...)
			} else if names.again(p.Name) {
				c.duplicate(path.Child("name"), p.Name)
			}
		}
		if p.ContainerPort == 0 {
			c.required(path.Child("containerPort"), "")
		} else {
			c.invalid(path.Child("containerPort"), p.ContainerPort, validation.IsValidPortNum(int(p.ContainerPort))...)
		}
		if p.HostPort != 0 {
			c.invalid(path.Child("hostPort"), p.HostPort, validation.IsValidPortNum(int(p.HostPort))...)
		}
		chosen(&c.problems, path.Child("protocol"), p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
	}
}

func (c *podChecker) checkHostPortConflicts(ctr *corev1.Container, path *field.Path, taken seen) {
	for i, p := range ctr.Ports {
		if p.HostPort == 0 {
			continue
		}
		if key := fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort); taken.again(key) {
			c.duplicate(path.Child("ports").Index(i).Child("hostPort"), key)
		}
	}
}

// checkHostPorts checks that ports on the host's network are the host's; in a
// template they may be left out.
func (c *podChecker) checkHostPorts() {
	if !c.spec.HostNetwork {
		return
	}
	for i := range c.spec.Containers {
		for j, p := range c.spec.Containers[i].Ports {
			if p.HostPort == p.ContainerPort || p.HostPort == 0 && c.meta == nil {
				continue
			}
			path := c.path.Child("containers").Index(i).Child("ports").Index(j)
			c.invalid(path.Child("hostPort"), p.HostPort, "must match `containerPort` when `hostNetwork` is true")
		}
	}
}

func (c *podChecker) checkResizePolicy(policies []corev1.ContainerResizePolicy, path *field.Path) {
	resources := seen{}
	for i, p := range policies {
		if resources.again(string(p.ResourceName)) {
			c.duplicate(path.Index(i), p.ResourceName)
		}
		chosen(&c.problems, path, p.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)
		chosen(&c.problems, path, p.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)
		if c.spec.RestartPolicy == corev1.RestartPolicyNever && p.RestartPolicy != corev1.NotRequired {
			c.invalid(path, p.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
		}
	}
}

func (c *podChecker) checkContainerRestarts(ctr *corev1.Container, path *field.Path) {
	if ctr.RestartPolicy == nil {
		if len(ctr.RestartPolicyRules) > 0 {
			c.required(path.Child("restartPolicy"), "must specify restartPolicy when restart rules are used")
		}
	} else {
		oneOf(&c.problems, path.Child("restartPolicy"), *ctr.RestartPolicy,
			corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)
	}
	path = path.Child("restartPolicyRules")
	if n := len(ctr.RestartPolicyRules); n > 20 {
		c.add(field.TooMany(path, n, 20))
	}
	for i, r := range ctr.RestartPolicyRules {
		oneOf(&c.problems, path.Index(i).Child("action"), r.Action,
			corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)
		codes := path.Index(i).Child("exitCodes")
		if r.ExitCodes == nil {
			c.required(codes, "must be specified")
			continue
		}
		oneOf(&c.problems, codes.Child("operator"), r.ExitCodes.Operator,
			corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)
		if n := len(r.ExitCodes.Values); n > 255 {
			c.add(field.TooMany(codes.Child("values"), n, 255))
		}
	}
}
