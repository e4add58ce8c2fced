package kinds

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// storageOptions are the volumes that name a storage system, most of which no
// longer work anywhere but are still checked.
func (c *podChecker) storageOptions(v *corev1.Volume) []option {
	return []option{
		{"gitRepo", v.GitRepo != nil, func(path *field.Path) {
			c.nonEmpty(path.Child("repository"), v.GitRepo.Repository)
			c.checkDescending(path.Child("directory"), v.GitRepo.Directory)
		}},
		{"gcePersistentDisk", v.GCEPersistentDisk != nil, func(*field.Path) {
			path := c.volumePath(v).Child("persistentDisk")
			c.nonEmpty(path.Child("pdName"), v.GCEPersistentDisk.PDName)
			c.checkPartition(v.GCEPersistentDisk.Partition, path)
		}},
		{"awsElasticBlockStore", v.AWSElasticBlockStore != nil, func(path *field.Path) {
			c.nonEmpty(path.Child("volumeID"), v.AWSElasticBlockStore.VolumeID)
			c.checkPartition(v.AWSElasticBlockStore.Partition, path)
		}},
		{"iscsi", v.ISCSI != nil, func(path *field.Path) { c.checkISCSI(v.ISCSI, path) }},
		{"glusterfs", v.Glusterfs != nil, func(path *field.Path) {
			c.nonEmpty(path.Child("endpoints"), v.Glusterfs.EndpointsName)
			c.nonEmpty(path.Child("path"), v.Glusterfs.Path)
		}},
		{"flocker", v.Flocker != nil, func(path *field.Path) { c.checkFlocker(v.Flocker, path) }},
		{"rbd", v.RBD != nil, func(path *field.Path) {
			c.some(path.Child("monitors"), v.RBD.CephMonitors)
			c.nonEmpty(path.Child("image"), v.RBD.RBDImage)
		}},
		{"cinder", v.Cinder != nil, func(path *field.Path) {
			c.nonEmpty(path.Child("volumeID"), v.Cinder.VolumeID)
			if ref := v.Cinder.SecretRef; ref != nil {
				c.nonEmpty(path.Child("secretRef", "name"), ref.Name)
			}
		}},
		{"cephfs", v.CephFS != nil, func(path *field.Path) { c.some(path.Child("monitors"), v.CephFS.Monitors) }},
		{"quobyte", v.Quobyte != nil, func(path *field.Path) {
			if v.Quobyte.Registry == "" {
				c.required(path.Child("registry"), "must be a host:port pair or multiple pairs separated by commas")
			}
			c.nonEmpty(path.Child("volume"), v.Quobyte.Volume)
		}},
		{"fc", v.FC != nil, func(path *field.Path) { c.checkFC(v.FC, path) }},
		{"flexVolume", v.FlexVolume != nil, func(path *field.Path) { c.checkFlex(v.FlexVolume, path) }},
		{"azureFile", v.AzureFile != nil, func(path *field.Path) {
			c.nonEmpty(path.Child("secretName"), v.AzureFile.SecretName)
			c.nonEmpty(path.Child("shareName"), v.AzureFile.ShareName)
		}},
		{"vsphereVolume", v.VsphereVolume != nil, func(path *field.Path) { c.nonEmpty(path.Child("volumePath"), v.VsphereVolume.VolumePath) }},
		{"photonPersistentDisk", v.PhotonPersistentDisk != nil, func(path *field.Path) { c.nonEmpty(path.Child("pdID"), v.PhotonPersistentDisk.PdID) }},
		{"portworxVolume", v.PortworxVolume != nil, func(path *field.Path) { c.nonEmpty(path.Child("volumeID"), v.PortworxVolume.VolumeID) }},
		{"azureDisk", v.AzureDisk != nil, func(path *field.Path) { c.checkAzureDisk(v.AzureDisk, path) }},
		{"storageos", v.StorageOS != nil, func(path *field.Path) {
			c.named(path.Child("volumeName"), v.StorageOS.VolumeName, validation.IsDNS1123Label)
		}},
		{"scaleIO", v.ScaleIO != nil, func(path *field.Path) {
			c.nonEmpty(path.Child("gateway"), v.ScaleIO.Gateway)
			c.nonEmpty(path.Child("system"), v.ScaleIO.System)
			c.nonEmpty(path.Child("volumeName"), v.ScaleIO.VolumeName)
		}},
	}
}

// volumePath is where v stands in the spec.
func (c *podChecker) volumePath(v *corev1.Volume) *field.Path {
	for i := range c.spec.Volumes {
		if &c.spec.Volumes[i] == v {
			return c.path.Child("volumes").Index(i)
		}
	}
	return c.path.Child("volumes")
}

func (c *podChecker) some(path *field.Path, list []string) {
	if len(list) == 0 {
		c.required(path, "")
	}
}

func (c *podChecker) checkPartition(n int32, path *field.Path) {
	if n < 0 || n > 255 {
		c.invalid(path.Child("partition"), n, validation.InclusiveRangeError(1, 255))
	}
}

func (c *podChecker) checkISCSI(s *corev1.ISCSIVolumeSource, path *field.Path) {
	c.nonEmpty(path.Child("targetPortal"), s.TargetPortal)
	if s.IQN == "" {
		c.required(path.Child("iqn"), "")
	} else if !strings.HasPrefix(s.IQN, "iqn") && !strings.HasPrefix(s.IQN, "eui") && !strings.HasPrefix(s.IQN, "naa") {
		c.invalid(path.Child("iqn"), s.IQN, "must be valid format starting with iqn, eui, or naa")
	}
	c.checkLun(s.Lun, path)
	if (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil {
		c.required(path.Child("secretRef"), "")
	}
}

func (c *podChecker) checkLun(n int32, path *field.Path) {
	if n < 0 || n > 255 {
		c.invalid(path.Child("lun"), n, validation.InclusiveRangeError(0, 255))
	}
}

func (c *podChecker) checkFlocker(s *corev1.FlockerVolumeSource, path *field.Path) {
	switch {
	case s.DatasetName == "" && s.DatasetUUID == "":
		c.required(path, "one of datasetName and datasetUUID is required")
	case s.DatasetName != "" && s.DatasetUUID != "":
		c.invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
	}
	if strings.Contains(s.DatasetName, "/") {
		c.invalid(path.Child("datasetName"), s.DatasetName, "must not contain '/'")
	}
}

func (c *podChecker) checkFC(s *corev1.FCVolumeSource, path *field.Path) {
	at := path.Child("targetWWNs")
	switch {
	case len(s.TargetWWNs) == 0 && len(s.WWIDs) == 0:
		c.required(at, "must specify either targetWWNs or wwids, but not both")
	case len(s.TargetWWNs) > 0 && len(s.WWIDs) > 0:
		c.invalid(at, s.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously")
	}
	if len(s.TargetWWNs) == 0 {
		return
	}
	if s.Lun == nil {
		c.required(path.Child("lun"), "lun is required if targetWWNs is specified")
		return
	}
	c.checkLun(*s.Lun, path)
}

func (c *podChecker) checkFlex(s *corev1.FlexVolumeSource, path *field.Path) {
	c.nonEmpty(path.Child("driver"), s.Driver)
	for key := range s.Options {
		domain, _, _ := strings.Cut(key, "/")
		domain = "." + strings.ToLower(domain)
		if strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			c.invalid(path.Child("options").Key(key), key, "kubernetes.io and k8s.io namespaces are reserved")
		}
	}
}

func (c *podChecker) checkAzureDisk(s *corev1.AzureDiskVolumeSource, path *field.Path) {
	c.nonEmpty(path.Child("diskName"), s.DiskName)
	c.nonEmpty(path.Child("diskURI"), s.DataDiskURI)
	if s.CachingMode != nil {
		oneOf(&c.problems, path.Child("cachingMode"), *s.CachingMode,
			corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)
	}
	if s.Kind != nil {
		oneOf(&c.problems, path.Child("kind"), *s.Kind,
			corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk, corev1.AzureSharedBlobDisk)
	}
}
