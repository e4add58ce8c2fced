package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podWarnings warns on create only.
func podWarnings(pod, old *corev1.Pod) []string {
	if old != nil {
		return nil
	}
	w := &podWarner{spec: &pod.Spec, meta: &pod.ObjectMeta}
	if faults := validation.IsDNS1123Label(pod.Name); len(faults) > 0 {
		w.list = append(w.list, fmt.Sprintf("metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: %v", faults))
	}
	return w.all()
}

// podTemplateWarnings are those of the template of a workload.
func podTemplateWarnings(t *corev1.PodTemplateSpec, path *field.Path) []string {
	w := &podWarner{spec: &t.Spec, meta: &t.ObjectMeta, path: path}
	return w.all()
}

// podWarner collects what is allowed in a pod spec and still hardly meant.
type podWarner struct {
	spec *corev1.PodSpec
	meta *metav1.ObjectMeta
	path *field.Path // of the template; nil for a pod
	list []string
}

func (w *podWarner) warn(path *field.Path, format string, args ...any) {
	w.list = append(w.list, fmt.Sprintf("%s: ", path)+fmt.Sprintf(format, args...))
}

func (w *podWarner) at(names ...string) *field.Path { return w.path.Child("spec", names...) }

func (w *podWarner) annotation(key string) *field.Path {
	return w.path.Child("metadata", "annotations").Key(key)
}

func (w *podWarner) all() []string {
	w.scheduling()
	w.annotations()
	w.volumes()
	w.duplicates()
	w.fractions(w.at("overhead"), w.spec.Overhead)
	w.containers()
	w.ports()
	if s := w.spec.TerminationGracePeriodSeconds; s != nil && *s < 0 {
		w.warn(w.at("terminationGracePeriodSeconds"), "must be >= 0; negative values are invalid and will be treated as 1")
	}
	w.affinity()
	w.addresses()
	return w.list
}

var deprecatedNodeLabels = map[string]string{
	"beta.kubernetes.io/arch":                       `deprecated since v1.14; use "kubernetes.io/arch" instead`,
	"beta.kubernetes.io/os":                         `deprecated since v1.14; use "kubernetes.io/os" instead`,
	"failure-domain.beta.kubernetes.io/region":      `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
	"failure-domain.beta.kubernetes.io/zone":        `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
	"beta.kubernetes.io/instance-type":              `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
	"app.kubernetes.io/created-by":                  `deprecated since v1.9`,
	"scheduler.alpha.kubernetes.io/preferAvoidPods": `deprecated since v1.22; use Taints and Tolerations instead`,
	"node-role.kubernetes.io/master":                `use "node-role.kubernetes.io/control-plane" instead`,
}

func (w *podWarner) scheduling() {
	for _, key := range slices.Sorted(maps.Keys(w.spec.NodeSelector)) {
		if why, is := deprecatedNodeLabels[key]; is {
			w.warn(w.at("nodeSelector").Key(key), "%s", why)
		}
	}
	if a := w.spec.Affinity; a != nil && a.NodeAffinity != nil {
		path := w.at("affinity", "nodeAffinity")
		for i, t := range requiredTerms(a.NodeAffinity) {
			w.nodeTerm(t, path.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").Index(i))
		}
		for i, t := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			w.nodeTerm(t.Preference, path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("preference"))
		}
	}
	for i, c := range w.spec.TopologySpreadConstraints {
		path := w.at("topologySpreadConstraints").Index(i)
		if why, is := deprecatedNodeLabels[c.TopologyKey]; is {
			w.warn(path.Child("topologyKey"), "%s is %s", c.TopologyKey, why)
		}
		if c.LabelSelector == nil {
			w.warn(path.Child("labelSelector"), "a null labelSelector results in matching no pod")
		}
	}
}

func (w *podWarner) nodeTerm(t corev1.NodeSelectorTerm, path *field.Path) {
	for i, e := range t.MatchExpressions {
		if why, is := deprecatedNodeLabels[e.Key]; is {
			w.warn(path.Child("matchExpressions").Index(i).Child("key"), "%s is %s", e.Key, why)
		}
	}
}

func (w *podWarner) annotations() {
	for _, a := range []struct{ key, why string }{
		{"scheduler.alpha.kubernetes.io/critical-pod", `non-functional in v1.16+; use the "priorityClassName" field instead`},
		{"security.alpha.kubernetes.io/sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
		{"security.alpha.kubernetes.io/unsafe-sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
	} {
		if _, has := w.meta.Annotations[a.key]; has {
			w.warn(w.annotation(a.key), "%s", a.why)
		}
	}
	field := w.spec.SecurityContext != nil && w.spec.SecurityContext.SeccompProfile != nil
	if _, has := w.meta.Annotations[corev1.SeccompPodAnnotationKey]; has && !field {
		w.seccomp(corev1.SeccompPodAnnotationKey)
	}
}

func (w *podWarner) seccomp(key string) {
	w.warn(w.annotation(key), `non-functional in v1.27+; use the "seccompProfile" field instead`)
}

func (w *podWarner) volumes() {
	for i, v := range w.spec.Volumes {
		for _, d := range []struct {
			name string
			set  bool
			why  string
		}{
			{"photonPersistentDisk", v.PhotonPersistentDisk != nil, "deprecated in v1.11, non-functional in v1.16+"},
			{"gitRepo", v.GitRepo != nil, "deprecated in v1.11, and disabled by default in v1.33+"},
			{"scaleIO", v.ScaleIO != nil, "deprecated in v1.16, non-functional in v1.22+"},
			{"flocker", v.Flocker != nil, "deprecated in v1.22, non-functional in v1.25+"},
			{"storageOS", v.StorageOS != nil, "deprecated in v1.22, non-functional in v1.25+"},
			{"quobyte", v.Quobyte != nil, "deprecated in v1.22, non-functional in v1.25+"},
			{"glusterfs", v.Glusterfs != nil, "deprecated in v1.25, non-functional in v1.26+"},
			{"cephfs", v.CephFS != nil, "deprecated in v1.28, non-functional in v1.31+"},
			{"rbd", v.RBD != nil, "deprecated in v1.28, non-functional in v1.31+"},
		} {
			if d.set {
				w.warn(w.at("volumes").Index(i).Child(d.name), "%s", d.why)
			}
		}
	}
}

func (w *podWarner) duplicates() {
	ips, secrets := seen{}, seen{}
	for i, a := range w.spec.HostAliases {
		if ips.again(a.IP) {
			w.warn(w.at("hostAliases").Index(i).Child("ip"), "duplicate ip %q", a.IP)
		}
	}
	for i, s := range w.spec.ImagePullSecrets {
		if secrets.again(s.Name) {
			w.warn(w.at("imagePullSecrets").Index(i).Child("name"), "duplicate name %q", s.Name)
		}
	}
	for i, s := range w.spec.ImagePullSecrets {
		if s.Name == "" {
			w.warn(w.at("imagePullSecrets").Index(i).Child("name"), "invalid empty name %q", s.Name)
		}
	}
}

// fractions warns of fractions of bytes.
func (w *podWarner) fractions(path *field.Path, list corev1.ResourceList) {
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if q, has := list[name]; has && q.MilliValue()%1000 != 0 {
			w.warn(path.Key(string(name)), "fractional byte value %q is invalid, must be an integer", q.String())
		}
	}
}

func (w *podWarner) containers() {
	c := &podChecker{spec: w.spec, path: w.at()}
	c.eachContainer(func(ctr *corev1.Container, path *field.Path) {
		key := corev1.SeccompContainerAnnotationKeyPrefix + ctr.Name
		if _, has := w.meta.Annotations[key]; has && (ctr.SecurityContext == nil || ctr.SecurityContext.SeccompProfile == nil) {
			w.seccomp(key)
		}
		w.appArmor(ctr)
		w.fractions(path.Child("resources", "limits"), ctr.Resources.Limits)
		w.fractions(path.Child("resources", "requests"), ctr.Resources.Requests)
		w.env(ctr.Env, path.Child("env"))
	})
}

// appArmor warns of templates; in pods the annotation becomes a field.
func (w *podWarner) appArmor(ctr *corev1.Container) {
	key := corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + ctr.Name
	v, has := w.meta.Annotations[key]
	if !has || w.path == nil || ctr.SecurityContext != nil && ctr.SecurityContext.AppArmorProfile != nil {
		return
	}
	var ofPod *corev1.AppArmorProfile
	if w.spec.SecurityContext != nil {
		ofPod = w.spec.SecurityContext.AppArmorProfile
	}
	if p := appArmorProfile(v); p == nil || !sameProfile(p, ofPod) {
		w.warn(w.annotation(key), `deprecated since v1.30; use the "appArmorProfile" field instead`)
	}
}

// env warns of variables that are set twice, unless the second builds on the
// first.
func (w *podWarner) env(vars []corev1.EnvVar, path *field.Path) {
	names := seen{}
	for i, v := range vars {
		ref := "$(" + v.Name + ")"
		if names.again(v.Name) && (v.ValueFrom != nil || v.Value == ref || !strings.Contains(v.Value, ref)) {
			w.warn(path.Index(i), "hides previous definition of %q, which may be dropped when using apply", v.Name)
		}
	}
}

func (w *podWarner) ports() {
	type place struct {
		path *field.Path
		port corev1.ContainerPort
	}
	taken, names := map[string][]place{}, map[string]*field.Path{}
	c := &podChecker{spec: w.spec, path: w.at()}
	c.eachContainer(func(ctr *corev1.Container, path *field.Path) {
		for i, p := range ctr.Ports {
			at := path.Child("ports").Index(i)
			if p.HostIP != "" && p.HostPort == 0 {
				w.warn(at, "hostIP set without hostPort: %+v", p)
			}
			key := fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol)
			for _, o := range taken[key] {
				if how := portClash(p, o.port); how != "" {
					w.warn(at, "%s port definition with %s", how, o.path)
				}
			}
			taken[key] = append(taken[key], place{at, p})
		}
	})
	c.eachContainer(func(ctr *corev1.Container, path *field.Path) {
		for i, p := range ctr.Ports {
			at := path.Child("ports").Index(i)
			if first, has := names[p.Name]; has && p.Name != "" {
				w.warn(at, "duplicate port name %q with %s, services and probes that select ports by name will use %s", p.Name, first, first)
			} else {
				names[p.Name] = at
			}
		}
	})
}

// portClash says how two definitions of one container port get in each other's
// way on the host.
func portClash(a, b corev1.ContainerPort) string {
	switch {
	case a.HostIP == b.HostIP && a.HostPort == b.HostPort:
		return "duplicate"
	case a.HostPort == 0 || b.HostPort == 0:
		return "overlapping"
	case a.HostPort == b.HostPort && (a.HostIP == "") != (b.HostIP == ""):
		return "dangerously ambiguous"
	}
	return ""
}

func (w *podWarner) affinity() {
	a := w.spec.Affinity
	if a == nil {
		return
	}
	if p := a.PodAffinity; p != nil {
		w.podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, w.at("affinity", "podAffinity"))
	}
	if p := a.PodAntiAffinity; p != nil {
		w.podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, w.at("affinity", "podAntiAffinity"))
	}
}

func (w *podWarner) podTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, path *field.Path) {
	const why = "a null labelSelector results in matching no pod"
	for i, t := range required {
		if t.LabelSelector == nil {
			w.warn(path.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i).Child("labelSelector"), why)
		}
	}
	for i, t := range preferred {
		if t.PodAffinityTerm.LabelSelector == nil {
			w.warn(path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("podAffinityTerm", "labelSelector"), why)
		}
	}
}

func (w *podWarner) addresses() {
	if dns := w.spec.DNSConfig; dns != nil {
		for i, ns := range dns.Nameservers {
			w.list = append(w.list, validation.GetWarningsForIP(w.at("dnsConfig", "nameservers").Index(i), ns)...)
		}
	}
	for i, a := range w.spec.HostAliases {
		w.list = append(w.list, validation.GetWarningsForIP(w.at("hostAliases").Index(i).Child("ip"), a.IP)...)
	}
}
