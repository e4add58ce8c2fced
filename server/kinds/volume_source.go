package kinds

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumeSource checks that a volume has one source, and that one; path is that
// of the spec. Most of the sources no longer work anywhere.
func (p *problems) volumeSource(path *field.Path, name string, s *corev1.PersistentVolumeSpec) {
	c := &podChecker{}
	options := []option{
		{"hostPath", s.HostPath != nil, func(at *field.Path) { c.checkHostPath(s.HostPath, at) }},
		{"gcePersistentDisk", s.GCEPersistentDisk != nil, func(*field.Path) {
			at := path.Child("persistentDisk")
			c.nonEmpty(at.Child("pdName"), s.GCEPersistentDisk.PDName)
			c.checkPartition(s.GCEPersistentDisk.Partition, at)
		}},
		{"awsElasticBlockStore", s.AWSElasticBlockStore != nil, func(at *field.Path) {
			c.nonEmpty(at.Child("volumeID"), s.AWSElasticBlockStore.VolumeID)
			c.checkPartition(s.AWSElasticBlockStore.Partition, at)
		}},
		{"glusterfs", s.Glusterfs != nil, func(at *field.Path) { c.glusterVolume(at, s.Glusterfs) }},
		{"flocker", s.Flocker != nil, func(at *field.Path) { c.checkFlocker(s.Flocker, at) }},
		{"nfs", s.NFS != nil, func(at *field.Path) { c.checkNFS(s.NFS, at) }},
		{"rbd", s.RBD != nil, func(at *field.Path) {
			c.some(at.Child("monitors"), s.RBD.CephMonitors)
			c.nonEmpty(at.Child("image"), s.RBD.RBDImage)
		}},
		{"quobyte", s.Quobyte != nil, func(at *field.Path) {
			if s.Quobyte.Registry == "" {
				c.required(at.Child("registry"), "must be a host:port pair or multiple pairs separated by commas")
			}
			c.nonEmpty(at.Child("volume"), s.Quobyte.Volume)
		}},
		{"cephFS", s.CephFS != nil, func(*field.Path) { c.some(path.Child("cephfs", "monitors"), s.CephFS.Monitors) }},
		{"iscsi", s.ISCSI != nil, func(at *field.Path) { c.iscsiVolume(at, name, s.ISCSI) }},
		{"cinder", s.Cinder != nil, func(at *field.Path) {
			c.nonEmpty(at.Child("volumeID"), s.Cinder.VolumeID)
			c.secretNamed(at.Child("secretRef"), s.Cinder.SecretRef)
		}},
		{"fc", s.FC != nil, func(at *field.Path) { c.checkFC(s.FC, at) }},
		{"flexVolume", s.FlexVolume != nil, func(at *field.Path) {
			c.checkFlex(&corev1.FlexVolumeSource{Driver: s.FlexVolume.Driver, Options: s.FlexVolume.Options}, at)
		}},
	}
	p.exactlyOne(path, "may not specify more than 1 volume type", "must specify a volume type", append(options, c.laterSources(path, s)...)...)
	p.add(c.list...)
}

// laterSources are those that came after the first; the order decides which of
// several is told to be one too many.
func (c *podChecker) laterSources(path *field.Path, s *corev1.PersistentVolumeSpec) []option {
	return []option{
		{"azureFile", s.AzureFile != nil, func(at *field.Path) {
			c.nonEmpty(at.Child("secretName"), s.AzureFile.SecretName)
			c.nonEmpty(at.Child("shareName"), s.AzureFile.ShareName)
			if s.AzureFile.SecretNamespace != nil {
				c.nonEmpty(at.Child("secretNamespace"), *s.AzureFile.SecretNamespace)
			}
		}},
		{"vsphereVolume", s.VsphereVolume != nil, func(at *field.Path) { c.nonEmpty(at.Child("volumePath"), s.VsphereVolume.VolumePath) }},
		{"photonPersistentDisk", s.PhotonPersistentDisk != nil, func(at *field.Path) { c.nonEmpty(at.Child("pdID"), s.PhotonPersistentDisk.PdID) }},
		{"portworxVolume", s.PortworxVolume != nil, func(at *field.Path) { c.nonEmpty(at.Child("volumeID"), s.PortworxVolume.VolumeID) }},
		{"azureDisk", s.AzureDisk != nil, func(at *field.Path) { c.checkAzureDisk(s.AzureDisk, at) }},
		{"scaleIO", s.ScaleIO != nil, func(at *field.Path) {
			c.nonEmpty(at.Child("gateway"), s.ScaleIO.Gateway)
			c.nonEmpty(at.Child("system"), s.ScaleIO.System)
			c.nonEmpty(at.Child("volumeName"), s.ScaleIO.VolumeName)
		}},
		{"local", s.Local != nil, func(at *field.Path) {
			if s.Local.Path == "" {
				c.required(at.Child("path"), "")
			} else {
				c.checkNoBacksteps(at.Child("path"), s.Local.Path)
			}
			if s.NodeAffinity == nil {
				c.required(path.Child("nodeAffinity"), "Local volume requires node affinity")
			}
		}},
		{"storageos", s.StorageOS != nil, func(at *field.Path) {
			c.named(at.Child("volumeName"), s.StorageOS.VolumeName, validation.IsDNS1123Label)
			if s.StorageOS.VolumeNamespace != "" {
				c.invalid(at.Child("volumeNamespace"), s.StorageOS.VolumeNamespace, validation.IsDNS1123Label(s.StorageOS.VolumeNamespace)...)
			}
			if ref := s.StorageOS.SecretRef; ref != nil {
				c.nonEmpty(at.Child("secretRef", "name"), ref.Name)
				c.nonEmpty(at.Child("secretRef", "namespace"), ref.Namespace)
			}
		}},
		{"csi", s.CSI != nil, func(at *field.Path) { c.csiVolume(at, s.CSI) }},
	}
}

func (p *problems) glusterVolume(path *field.Path, s *corev1.GlusterfsPersistentVolumeSource) {
	p.nonEmpty(path.Child("endpoints"), s.EndpointsName)
	p.nonEmpty(path.Child("path"), s.Path)
	switch at, ns := path.Child("endpointsNamespace"), s.EndpointsNamespace; {
	case ns == nil:
	case *ns == "":
		p.invalid(at, *ns, "if the endpointnamespace is set, it must be a valid namespace name")
	default:
		p.invalid(at, *ns, apivalidation.ValidateNamespaceName(*ns, false)...)
	}
}

func (p *problems) iscsiVolume(path *field.Path, name string, s *corev1.ISCSIPersistentVolumeSource) {
	p.nonEmpty(path.Child("targetPortal"), s.TargetPortal)
	if s.InitiatorName != nil && len(name+":"+s.TargetPortal) > 64 {
		p.invalid(path.Child("targetportal"), s.TargetPortal, "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.")
	}
	if s.IQN == "" {
		p.required(path.Child("iqn"), "")
	} else if !isInitiator(s.IQN) {
		p.invalid(path.Child("iqn"), s.IQN, "must be valid format")
	}
	if s.Lun < 0 || s.Lun > 255 {
		p.invalid(path.Child("lun"), s.Lun, validation.InclusiveRangeError(0, 255))
	}
	if (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil {
		p.required(path.Child("secretRef"), "")
	}
	if s.SecretRef != nil {
		p.nonEmpty(path.Child("secretRef", "name"), s.SecretRef.Name)
	}
	if s.InitiatorName != nil && !isInitiator(*s.InitiatorName) {
		p.invalid(path.Child("initiatorname"), *s.InitiatorName, "must be valid format")
	}
}

func isInitiator(name string) bool {
	return strings.HasPrefix(name, "iqn") || strings.HasPrefix(name, "eui") || strings.HasPrefix(name, "naa")
}

// secretNamed checks that a reference, if given, has both of its parts.
func (p *problems) secretNamed(path *field.Path, ref *corev1.SecretReference) {
	if ref != nil {
		p.nonEmpty(path.Child("name"), ref.Name)
		p.nonEmpty(path.Child("namespace"), ref.Namespace)
	}
}

func (p *problems) csiVolume(path *field.Path, s *corev1.CSIPersistentVolumeSource) {
	p.csiDriverName(path.Child("driver"), s.Driver)
	p.nonEmpty(path.Child("volumeHandle"), s.VolumeHandle)
	for _, r := range []struct {
		name string
		ref  *corev1.SecretReference
	}{
		{"controllerPublishSecretRef", s.ControllerPublishSecretRef}, {"controllerExpandSecretRef", s.ControllerExpandSecretRef},
		{"nodePublishSecretRef", s.NodePublishSecretRef}, {"nodeExpandSecretRef", s.NodeExpandSecretRef},
	} {
		if r.ref != nil {
			p.named(path.Child(r.name, "name"), r.ref.Name, validation.IsDNS1123Subdomain)
			p.named(path.Child(r.name, "namespace"), r.ref.Namespace, validation.IsDNS1123Label)
		}
	}
}

func (p *problems) csiDriverName(path *field.Path, name string) {
	if name == "" {
		p.required(path, "")
		return
	}
	if len(name) > 63 {
		p.add(field.TooLong(path, "", 63))
	}
	p.invalid(path, name, validation.IsDNS1123Subdomain(strings.ToLower(name))...)
}
