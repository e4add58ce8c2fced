package kinds

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const badMode = "must be a number between 0 and 0777 (octal), both inclusive"

// checkVolumes checks the volumes and remembers those without fault, which are
// the ones that containers can mount.
func (c *podChecker) checkVolumes() {
	names, created := seen{}, c.createdClaims()
	for i := range c.spec.Volumes {
		v, path := &c.spec.Volumes[i], c.path.Child("volumes").Index(i)
		before := len(c.list)
		c.checkVolume(v, path)
		c.named(path.Child("name"), v.Name, validation.IsDNS1123Label)
		if names[v.Name] {
			c.duplicate(path.Child("name"), v.Name)
		}
		if len(c.list) == before {
			names[v.Name] = true
			c.volumes[v.Name] = &v.VolumeSource
		}
		if claim := v.PersistentVolumeClaim; claim != nil && created[claim.ClaimName] {
			c.invalid(path.Child("persistentVolumeClaim", "claimName"), claim.ClaimName,
				"must not reference a PVC that gets created for an ephemeral volume")
		}
	}
}

// createdClaims are the names of the claims that ephemeral volumes lead to.
func (c *podChecker) createdClaims() map[string]bool {
	created := map[string]bool{}
	if c.meta == nil || c.meta.Name == "" {
		return created
	}
	for _, v := range c.spec.Volumes {
		if v.Ephemeral != nil {
			created[c.meta.Name+"-"+v.Name] = true
		}
	}
	return created
}

func (c *podChecker) checkVolume(v *corev1.Volume, path *field.Path) {
	options := []option{
		{"emptyDir", v.EmptyDir != nil, func(path *field.Path) { c.checkEmptyDir(v.EmptyDir, path) }},
		{"hostPath", v.HostPath != nil, func(path *field.Path) { c.checkHostPath(v.HostPath, path) }},
		{"secret", v.Secret != nil, func(path *field.Path) {
			c.nonEmpty(path.Child("secretName"), v.Secret.SecretName)
			c.checkFiles(v.Secret.DefaultMode, v.Secret.Items, path)
		}},
		{"nfs", v.NFS != nil, func(path *field.Path) { c.checkNFS(v.NFS, path) }},
		{"persistentVolumeClaim", v.PersistentVolumeClaim != nil, func(path *field.Path) {
			c.nonEmpty(path.Child("claimName"), v.PersistentVolumeClaim.ClaimName)
		}},
		{"downwardAPI", v.DownwardAPI != nil, func(path *field.Path) {
			c.checkMode(path.Child("defaultMode"), v.DownwardAPI.DefaultMode)
			for i := range v.DownwardAPI.Items {
				c.checkDownwardFile(&v.DownwardAPI.Items[i], path)
			}
		}},
		{"configMap", v.ConfigMap != nil, func(path *field.Path) {
			c.nonEmpty(path.Child("name"), v.ConfigMap.Name)
			c.checkFiles(v.ConfigMap.DefaultMode, v.ConfigMap.Items, path)
		}},
		{"projected", v.Projected != nil, func(path *field.Path) { c.checkProjected(v.Projected, path) }},
		{"csi", v.CSI != nil, func(path *field.Path) { c.checkCSI(v.CSI, path) }},
		{"ephemeral", v.Ephemeral != nil, func(path *field.Path) { c.checkEphemeral(v, path) }},
		{"image", v.Image != nil, func(path *field.Path) {
			c.nonEmpty(path.Child("reference"), v.Image.Reference)
			c.checkPullPolicy(v.Image.PullPolicy, path.Child("pullPolicy"))
		}},
	}
	c.exactlyOne(path, "may not specify more than 1 volume type", "must specify a volume type",
		append(options, c.storageOptions(v)...)...)
}

func (c *podChecker) checkEmptyDir(s *corev1.EmptyDirVolumeSource, path *field.Path) {
	if s.SizeLimit != nil && s.SizeLimit.Cmp(resource.Quantity{}) < 0 {
		c.forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity")
	}
}

func (c *podChecker) checkHostPath(s *corev1.HostPathVolumeSource, path *field.Path) {
	if s.Path == "" {
		c.required(path.Child("path"), "")
		return
	}
	c.checkNoBacksteps(path.Child("path"), s.Path)
	if s.Type != nil {
		oneOf(&c.problems, path.Child("type"), *s.Type,
			corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
			corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket)
	}
}

func (c *podChecker) checkNFS(s *corev1.NFSVolumeSource, at *field.Path) {
	c.nonEmpty(at.Child("server"), s.Server)
	c.nonEmpty(at.Child("path"), s.Path)
	if !path.IsAbs(s.Path) {
		c.invalid(at.Child("path"), s.Path, "must be an absolute path")
	}
}

func (c *podChecker) checkCSI(s *corev1.CSIVolumeSource, path *field.Path) {
	if s.Driver == "" {
		c.required(path.Child("driver"), "")
	} else {
		if len(s.Driver) > 63 {
			c.add(field.TooLong(path.Child("driver"), "", 63))
		}
		c.invalid(path.Child("driver"), s.Driver, validation.IsDNS1123Subdomain(strings.ToLower(s.Driver))...)
	}
	if ref := s.NodePublishSecretRef; ref != nil {
		if ref.Name == "" {
			c.required(path.Child("nodePublishSecretRef", "name"), "")
			return
		}
		c.invalid(path.Child("name"), ref.Name, apivalidation.NameIsDNSSubdomain(ref.Name, false)...)
	}
}

// checkEphemeral checks the template of a claim and the name that it gets.
func (c *podChecker) checkEphemeral(v *corev1.Volume, path *field.Path) {
	t := v.Ephemeral.VolumeClaimTemplate
	if t == nil {
		c.required(path.Child("volumeClaimTemplate"), "")
		return
	}
	path = path.Child("volumeClaimTemplate")
	c.add(apivalidation.ValidateAnnotations(t.Annotations, path.Child("metadata", "annotations"))...)
	c.add(metavalidation.ValidateLabels(t.Labels, path.Child("metadata", "labels"))...)
	c.claimSpec(path.Child("spec"), &t.Spec)
	if c.meta != nil && c.meta.Name != "" {
		name := c.meta.Name + "-" + v.Name
		for _, fault := range apivalidation.NameIsDNSSubdomain(name, false) {
			c.invalid(c.volumePath(v).Child("name"), v.Name, fmt.Sprintf("PVC name %q: %v", name, fault))
		}
	}
}

func (c *podChecker) checkMode(path *field.Path, mode *int32) {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		c.invalid(path, *mode, badMode)
	}
}

// checkFiles checks the mode and the items of a secret or config map.
func (c *podChecker) checkFiles(mode *int32, items []corev1.KeyToPath, path *field.Path) {
	c.checkMode(path.Child("defaultMode"), mode)
	for i := range items {
		c.checkKeyToPath(&items[i], path.Child("items").Index(i))
	}
}

func (c *podChecker) checkKeyToPath(item *corev1.KeyToPath, path *field.Path) {
	c.nonEmpty(path.Child("key"), item.Key)
	c.nonEmpty(path.Child("path"), item.Path)
	c.checkFilePath(path.Child("path"), item.Path)
	c.checkMode(path.Child("mode"), item.Mode)
}

// checkNoBacksteps checks that a path does not lead upwards.
func (c *podChecker) checkNoBacksteps(at *field.Path, target string) {
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." {
			c.invalid(at, target, "must not contain '..'")
			return
		}
	}
}

// checkDescending checks that a path stays below where it starts.
func (c *podChecker) checkDescending(at *field.Path, target string) {
	if path.IsAbs(target) {
		c.invalid(at, target, "must be a relative path")
	}
	c.checkNoBacksteps(at, target)
}

// checkFilePath checks the path of a file in a volume; names with two leading
// dots belong to the kubelet.
func (c *podChecker) checkFilePath(at *field.Path, target string) {
	c.checkDescending(at, target)
	if strings.HasPrefix(target, "..") && !strings.HasPrefix(target, "../") {
		c.invalid(at, target, "must not start with '..'")
	}
}
