package kinds

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func nodeKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("Node"),
		Resource: "nodes", Singular: "node", ShortNames: []string{"no"},
		New: newOf[corev1.Node], NewList: newOf[corev1.NodeList],
		HasStatus: true, StatusOnCreate: true,
		Subresources: []Subresource{
			{Name: "proxy", GVK: corev1.SchemeGroupVersion.WithKind("NodeProxyOptions"), Verbs: proxyVerbs()},
		},
		Default:        each(defaultNode),
		PrepareCreate:  each(prepareNode),
		PrepareUpdate:  eachPair(prepareNodeUpdate),
		PrepareStatus:  eachPair(prepareNodeStatus),
		Validate:       check(validateNode),
		ValidateUpdate: checkPair(validateNodeUpdate),
		ValidateStatus: checkPair(validateNodeUpdate),
		Warnings:       warn(nodeWarnings),
		Fields:         []string{"spec.unschedulable"},
		FieldSet: fieldSet(func(n *corev1.Node) fields.Set {
			return fields.Set{"spec.unschedulable": strconv.FormatBool(n.Spec.Unschedulable)}
		}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(), column("Status", "Whether the node is ready and takes pods."), column("Roles", "What the node is for."),
			ageColumn(), column("Version", "Version of the node's agent."),
			wideColumn("Internal-IP", "Address within the cluster."), wideColumn("External-IP", "Address for others."),
			wideColumn("OS-Image", "Operating system."), wideColumn("Kernel-Version", "Kernel and architecture."),
			wideColumn("Container-Runtime", "Container runtime and its version."),
		},
		Cells: cells(nodeCells),
	}
}

// prepareNode keeps pods from a new node until it says that it is ready.
func prepareNode(n *corev1.Node) {
	n.Spec.ConfigSource, n.Status.Config = nil, nil
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&notReady) }) {
		n.Spec.Taints = append(n.Spec.Taints, notReady)
	}
}

// defaultNode keeps the two ways to say the pods' ranges in step, the old one
// wins, and takes all of the capacity to be for pods.
func defaultNode(n *corev1.Node) {
	switch s := &n.Spec; {
	case s.PodCIDR != "" && (len(s.PodCIDRs) == 0 || s.PodCIDRs[0] != s.PodCIDR):
		s.PodCIDRs = []string{s.PodCIDR}
	case s.PodCIDR == "" && len(s.PodCIDRs) > 0:
		s.PodCIDR = s.PodCIDRs[0]
	}
	roundUp(n.Status.Capacity)
	if n.Status.Allocatable == nil && n.Status.Capacity != nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
	roundUp(n.Status.Allocatable)
}

// prepareNodeUpdate and prepareNodeStatus drop a feature that is no more, where
// it was not in use.
func prepareNodeUpdate(n, old *corev1.Node) {
	if old.Spec.ConfigSource == nil {
		n.Spec.ConfigSource = nil
	}
}

func prepareNodeStatus(n, old *corev1.Node) {
	if old.Status.Config == nil {
		n.Status.Config = nil
	}
}

func validateNode(n *corev1.Node) field.ErrorList {
	var p problems
	p.checkNodeAnnotations(n.Annotations, field.NewPath("metadata", "annotations"))
	// Errors have ever been reported as if taints were metadata.
	p.checkTaints(n.Spec.Taints, field.NewPath("metadata", "taints"))
	p.checkNodeResources(n)
	path, v6 := field.NewPath("spec", "podCIDRs"), 0
	for i, cidr := range n.Spec.PodCIDRs {
		p.add(validation.IsValidCIDRForLegacyField(path.Index(i), cidr, true, nil)...)
		if prefix, err := netip.ParsePrefix(cidr); err == nil && prefix.Addr().Is6() {
			v6++
		}
	}
	if c := len(n.Spec.PodCIDRs); c > 2 || c == 2 && v6 != 1 {
		p.invalid(path, n.Spec.PodCIDRs, "may specify no more than one CIDR for each IP family")
	}
	return p.list
}

const taintsAnnotation = "scheduler.alpha.kubernetes.io/taints"

func (p *problems) checkNodeAnnotations(annotations map[string]string, path *field.Path) {
	text := annotations[taintsAnnotation]
	if text == "" {
		return
	}
	var taints []corev1.Taint
	if err := json.Unmarshal([]byte(text), &taints); err != nil {
		p.invalid(path, taintsAnnotation, err.Error())
		return
	}
	p.checkTaints(taints, path.Child(taintsAnnotation))
}

func (p *problems) checkTaints(taints []corev1.Taint, path *field.Path) {
	unique := seen{}
	for i, t := range taints {
		path := path.Index(i)
		p.add(metavalidation.ValidateLabelName(t.Key, path.Child("key"))...)
		if faults := validation.IsValidLabelValue(t.Value); len(faults) > 0 {
			p.invalid(path.Child("value"), t.Value, strings.Join(faults, ";"))
		}
		p.checkEffect(t.Effect, path.Child("effect"))
		if unique.again(string(t.Effect) + " " + t.Key) {
			twice := field.Duplicate(path, t)
			twice.Detail = "taints must be unique by key and effect pair"
			p.add(twice)
		}
	}
}

func (p *problems) checkNodeResources(n *corev1.Node) {
	for name, q := range n.Status.Capacity {
		p.add(validateQuantity(name, q, field.NewPath("status", "capacity", string(name)))...)
	}
	for name, q := range n.Status.Allocatable {
		p.add(validateQuantity(name, q, field.NewPath("status", "allocatable", string(name)))...)
	}
}

// validateNodeUpdate checks updates of the node and of its status alike.
func validateNodeUpdate(n, old *corev1.Node) field.ErrorList {
	var p problems
	p.checkNodeAnnotations(n.Annotations, field.NewPath("metadata", "annotations"))
	p.checkTaints(n.Spec.Taints, field.NewPath("metadata", "taints"))
	p.checkNodeResources(n)
	for i, a := range n.Status.Addresses {
		if slices.Contains(n.Status.Addresses[:i], a) {
			p.duplicate(field.NewPath("status", "addresses").Index(i), a)
		}
	}
	if len(old.Spec.PodCIDRs) > 0 && !slices.Equal(n.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		p.forbidden(field.NewPath("spec", "podCIDRs"), `node updates may not change podCIDR except from "" to valid`)
	}
	if old.Spec.ProviderID != "" && n.Spec.ProviderID != old.Spec.ProviderID {
		p.forbidden(field.NewPath("spec", "providerID"), `node updates may not change providerID except from "" to valid`)
	}
	if n.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		p.forbidden(field.NewPath("spec", "externalID"), "may not be updated")
	}
	return p.list
}

func nodeWarnings(n, _ *corev1.Node) []string {
	var w []string
	if n.Spec.ConfigSource != nil {
		w = append(w, "spec.configSource: the feature is removed")
	}
	if n.Spec.DoNotUseExternalID != "" {
		w = append(w, "spec.externalID: this field is deprecated, and is unused by Kubernetes")
	}
	for i, cidr := range n.Spec.PodCIDRs {
		w = append(w, validation.GetWarningsForCIDR(field.NewPath("spec", "podCIDRs").Index(i), cidr)...)
	}
	return w
}

func nodeCells(n *corev1.Node, now metav1.Time) []any {
	info := n.Status.NodeInfo
	kernel := orElse(info.KernelVersion, "<unknown>")
	if info.Architecture != "" {
		kernel += " (" + info.Architecture + ")"
	}
	return []any{
		n.Name, nodeStatusCell(n), nodeRolesCell(n), Age(n.CreationTimestamp, now), info.KubeletVersion,
		nodeAddressCell(n, corev1.NodeInternalIP), nodeAddressCell(n, corev1.NodeExternalIP),
		orElse(info.OSImage, "<unknown>"), kernel, orElse(info.ContainerRuntimeVersion, "<unknown>"),
	}
}

// nodeStatusCell goes by the last condition Ready.
func nodeStatusCell(n *corev1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		status = "NotReady"
		if c.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRolesCell(n *corev1.Node) string {
	var roles []string
	for key, v := range n.Labels {
		role, isRole := strings.CutPrefix(key, "node-role.kubernetes.io/")
		if key == "kubernetes.io/role" {
			role, isRole = v, true
		}
		if isRole && role != "" {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return orElse(strings.Join(slices.Compact(roles), ","), "<none>")
}

func nodeAddressCell(n *corev1.Node, t corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == t {
			return a.Address
		}
	}
	return "<none>"
}
