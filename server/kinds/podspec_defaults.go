package kinds

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const fileMode int32 = 0o644

// defaultPodSpec fills in what a pod, or the template of one, left out. What is
// filled in on pods only is defaultPod's.
func defaultPodSpec(spec *corev1.PodSpec) {
	setEmpty(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	setEmpty(&spec.DNSPolicy, corev1.DNSClusterFirst)
	setEmpty(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setEmpty(&spec.SchedulerName, corev1.DefaultSchedulerName)
	setDefault(&spec.SecurityContext, corev1.PodSecurityContext{})
	setDefault(&spec.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for c := range containersOf(spec) {
		defaultContainer(c)
	}
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundRequirements(spec.Resources)
	}
}

// containersOf yields the containers of a pod of all three sorts: init,
// regular, ephemeral.
func containersOf(spec *corev1.PodSpec) func(yield func(*corev1.Container) bool) {
	return func(yield func(*corev1.Container) bool) {
		for i := range spec.InitContainers {
			if !yield(&spec.InitContainers[i]) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(&spec.Containers[i]) {
				return
			}
		}
		for i := range spec.EphemeralContainers {
			if !yield((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)) {
				return
			}
		}
	}
}

func defaultContainer(c *corev1.Container) {
	setEmpty(&c.ImagePullPolicy, pullPolicy(c.Image))
	setEmpty(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setEmpty(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		setEmpty(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		defaultEnvSource(c.Env[i].ValueFrom)
	}
	roundRequirements(&c.Resources)
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(p)
	}
	if l := c.Lifecycle; l != nil {
		for _, h := range []*corev1.LifecycleHandler{l.PostStart, l.PreStop} {
			if h != nil {
				defaultHTTPGet(h.HTTPGet)
			}
		}
	}
}

func defaultEnvSource(from *corev1.EnvVarSource) {
	if from == nil {
		return
	}
	defaultFieldRef(from.FieldRef)
	if from.FileKeyRef != nil {
		setDefault(&from.FileKeyRef.Optional, false)
	}
}

func defaultFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		setEmpty(&ref.APIVersion, "v1")
	}
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	setEmpty(&p.TimeoutSeconds, 1)
	setEmpty(&p.PeriodSeconds, 10)
	setEmpty(&p.SuccessThreshold, 1)
	setEmpty(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		setDefault(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(get *corev1.HTTPGetAction) {
	if get != nil {
		setEmpty(&get.Path, "/")
		setEmpty(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if s := v.HostPath; s != nil {
		setDefault(&s.Type, corev1.HostPathUnset)
	}
	if s := v.Secret; s != nil {
		setDefault(&s.DefaultMode, fileMode)
	}
	if s := v.ConfigMap; s != nil {
		setDefault(&s.DefaultMode, fileMode)
	}
	if s := v.DownwardAPI; s != nil {
		setDefault(&s.DefaultMode, fileMode)
		defaultDownwardFiles(s.Items)
	}
	if s := v.Projected; s != nil {
		defaultProjected(s)
	}
	if s := v.Image; s != nil {
		setEmpty(&s.PullPolicy, pullPolicy(s.Reference))
	}
	if s := v.Ephemeral; s != nil && s.VolumeClaimTemplate != nil {
		setDefault(&s.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		roundUp(s.VolumeClaimTemplate.Spec.Resources.Limits)
		roundUp(s.VolumeClaimTemplate.Spec.Resources.Requests)
	}
	defaultStorageVolume(v)
}

func defaultProjected(s *corev1.ProjectedVolumeSource) {
	setDefault(&s.DefaultMode, fileMode)
	for i := range s.Sources {
		if d := s.Sources[i].DownwardAPI; d != nil {
			defaultDownwardFiles(d.Items)
		}
		if t := s.Sources[i].ServiceAccountToken; t != nil {
			setDefault(&t.ExpirationSeconds, 3600)
		}
	}
}

func defaultDownwardFiles(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		defaultFieldRef(files[i].FieldRef)
	}
}

// defaultStorageVolume is for the sources that name a storage system.
func defaultStorageVolume(v *corev1.Volume) {
	if s := v.ISCSI; s != nil {
		setEmpty(&s.ISCSIInterface, "default")
	}
	if s := v.RBD; s != nil {
		setEmpty(&s.RBDPool, "rbd")
		setEmpty(&s.RadosUser, "admin")
		setEmpty(&s.Keyring, "/etc/ceph/keyring")
	}
	if s := v.AzureDisk; s != nil {
		setDefault(&s.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		setDefault(&s.Kind, corev1.AzureSharedBlobDisk)
		setDefault(&s.FSType, "ext4")
		setDefault(&s.ReadOnly, false)
	}
	if s := v.ScaleIO; s != nil {
		setEmpty(&s.StorageMode, "ThinProvisioned")
		setEmpty(&s.FSType, "xfs")
	}
}

func roundRequirements(r *corev1.ResourceRequirements) {
	roundUp(r.Limits)
	roundUp(r.Requests)
}

// roundUp makes every quantity a multiple of a thousandth.
func roundUp(list corev1.ResourceList) {
	for name, q := range list {
		q.RoundUp(resource.Milli)
		list[name] = q
	}
}

// imageReference has the tag as its first and the digest as its second group.
var imageReference = regexp.MustCompile(`^` +
	`(?:(?:\[[0-9a-fA-F:]+\]|[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*)(?::[0-9]+)?/)?` +
	`[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*)*` +
	`(?::(\w[\w.-]{0,127}))?` +
	`(?:@([a-zA-Z][a-zA-Z0-9]*(?:[-_+.][a-zA-Z][a-zA-Z0-9]*)*:[0-9a-fA-F]{32,}))?$`)

// imageID is the hexadecimal name of an image, which is no reference.
var imageID = regexp.MustCompile(`^[a-f0-9]{64}$`)

// pullPolicy is Always for an image whose tag is latest, given or implied.
func pullPolicy(image string) corev1.PullPolicy {
	m := imageReference.FindStringSubmatch(image)
	if m == nil || imageID.MatchString(image) {
		return corev1.PullIfNotPresent
	}
	if tag, digest := m[1], m[2]; tag == "latest" || tag == "" && digest == "" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
