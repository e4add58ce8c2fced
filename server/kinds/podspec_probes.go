package kinds

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const manyHandlers, noHandler = "may not specify more than 1 handler type", "must specify a handler type"

func (c *podChecker) checkProbes(ctr *corev1.Container, path *field.Path) {
	c.checkProbe(ctr.LivenessProbe, path.Child("livenessProbe"))
	c.checkProbe(ctr.ReadinessProbe, path.Child("readinessProbe"))
	c.checkProbe(ctr.StartupProbe, path.Child("startupProbe"))
	for _, once := range []struct {
		name  string
		probe *corev1.Probe
	}{{"livenessProbe", ctr.LivenessProbe}, {"startupProbe", ctr.StartupProbe}} {
		if once.probe != nil && once.probe.SuccessThreshold != 1 {
			c.invalid(path.Child(once.name, "successThreshold"), once.probe.SuccessThreshold, "must be 1")
		}
	}
	if p := ctr.ReadinessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		c.invalid(path.Child("readinessProbe", "terminationGracePeriodSeconds"), p.TerminationGracePeriodSeconds,
			"must not be set for readinessProbes")
	}
}

func (c *podChecker) checkProbe(p *corev1.Probe, path *field.Path) {
	if p == nil {
		return
	}
	c.exactlyOne(path, manyHandlers, noHandler,
		c.execOption(p.Exec), c.httpOption(p.HTTPGet), c.tcpOption(p.TCPSocket),
		option{"grpc", p.GRPC != nil, func(path *field.Path) { c.checkPortNumber(path.Child("port"), int(p.GRPC.Port)) }})
	c.nonNegative(path.Child("initialDelaySeconds"), int64(p.InitialDelaySeconds))
	c.nonNegative(path.Child("timeoutSeconds"), int64(p.TimeoutSeconds))
	c.nonNegative(path.Child("periodSeconds"), int64(p.PeriodSeconds))
	c.nonNegative(path.Child("successThreshold"), int64(p.SuccessThreshold))
	c.nonNegative(path.Child("failureThreshold"), int64(p.FailureThreshold))
	if s := p.TerminationGracePeriodSeconds; s != nil && *s <= 0 {
		c.invalid(path.Child("terminationGracePeriodSeconds"), *s, "must be greater than 0")
	}
}

func (c *podChecker) checkLifecycle(l *corev1.Lifecycle, path *field.Path) {
	if l == nil {
		return
	}
	for _, hook := range []struct {
		name    string
		handler *corev1.LifecycleHandler
	}{{"postStart", l.PostStart}, {"preStop", l.PreStop}} {
		h := hook.handler
		if h == nil {
			continue
		}
		c.exactlyOne(path.Child(hook.name), manyHandlers, noHandler,
			c.execOption(h.Exec), c.httpOption(h.HTTPGet), c.tcpOption(h.TCPSocket),
			option{"sleep", h.Sleep != nil, func(path *field.Path) { c.checkSleep(h.Sleep, path) }})
	}
	if l.StopSignal != nil && c.spec.OS == nil {
		c.forbidden(path.Child("stopSignal"), "may not be set for containers with empty `spec.os.name`")
	}
}

func (c *podChecker) execOption(e *corev1.ExecAction) option {
	return option{"exec", e != nil, func(path *field.Path) {
		if len(e.Command) == 0 {
			c.required(path.Child("command"), "")
		}
	}}
}

func (c *podChecker) httpOption(get *corev1.HTTPGetAction) option {
	return option{"httpGet", get != nil, func(path *field.Path) {
		c.nonEmpty(path.Child("path"), get.Path)
		c.checkPort(path.Child("port"), get.Port)
		oneOf(&c.problems, path.Child("scheme"), get.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
		for _, h := range get.HTTPHeaders {
			c.invalid(path.Child("httpHeaders"), h.Name, validation.IsHTTPHeaderName(h.Name)...)
		}
	}}
}

func (c *podChecker) tcpOption(tcp *corev1.TCPSocketAction) option {
	return option{"tcpSocket", tcp != nil, func(path *field.Path) { c.checkPort(path.Child("port"), tcp.Port) }}
}

// checkSleep takes an unset grace period as no bound: that is a fault of its own.
func (c *podChecker) checkSleep(s *corev1.SleepAction, path *field.Path) {
	grace := c.spec.TerminationGracePeriodSeconds
	if grace != nil && (s.Seconds < 0 || s.Seconds > *grace) {
		c.invalid(path, s.Seconds, fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", *grace))
	}
}

func (c *podChecker) checkPort(path *field.Path, port intstr.IntOrString) {
	if port.Type == intstr.String {
		c.invalid(path, port.StrVal, validation.IsValidPortName(port.StrVal)...)
		return
	}
	c.checkPortNumber(path, int(port.IntVal))
}

func (c *podChecker) checkPortNumber(path *field.Path, port int) {
	c.invalid(path, port, validation.IsValidPortNum(port)...)
}
