package kinds

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *podChecker) checkEnv(vars []corev1.EnvVar, path *field.Path) {
	for i, v := range vars {
		path := path.Index(i)
		c.named(path.Child("name"), v.Name, validation.IsRelaxedEnvVarName)
		if v.ValueFrom != nil {
			c.checkEnvSource(v, path.Child("valueFrom"))
		}
	}
}

func (c *podChecker) checkEnvSource(v corev1.EnvVar, path *field.Path) {
	from, sources := v.ValueFrom, 0
	if r := from.FieldRef; r != nil {
		sources++
		c.checkFieldRef(r, envFields, path.Child("fieldRef"))
	}
	if r := from.ResourceFieldRef; r != nil {
		sources++
		c.checkResourceRef(r, path.Child("resourceFieldRef"), false)
	}
	if r := from.ConfigMapKeyRef; r != nil {
		sources++
		c.checkKeyRef(r.Name, r.Key, path.Child("configMapKeyRef"))
	}
	if r := from.SecretKeyRef; r != nil {
		sources++
		c.checkKeyRef(r.Name, r.Key, path.Child("secretKeyRef"))
	}
	if r := from.FileKeyRef; r != nil {
		sources++
		c.checkFileKeyRef(r, path.Child("fileKeyRef"))
	}
	switch {
	case sources == 0:
		c.invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
	case v.Value != "":
		c.invalid(path, "", "may not be specified when `value` is not empty")
	case sources > 1:
		c.invalid(path, "", "may not have more than one field specified at a time")
	}
}

func (c *podChecker) checkEnvFrom(sources []corev1.EnvFromSource, path *field.Path) {
	for i, s := range sources {
		at := path.Index(i)
		if s.Prefix != "" {
			c.invalid(at.Child("prefix"), s.Prefix, validation.IsRelaxedEnvVarName(s.Prefix)...)
		}
		if s.ConfigMapRef != nil {
			c.named(at.Child("configMapRef", "name"), s.ConfigMapRef.Name, subdomainPrefix)
		}
		if s.SecretRef != nil {
			c.named(at.Child("secretRef", "name"), s.SecretRef.Name, subdomainPrefix)
		}
		switch {
		case s.ConfigMapRef == nil && s.SecretRef == nil:
			c.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
		case s.ConfigMapRef != nil && s.SecretRef != nil:
			c.invalid(path, "", "may not have more than one field specified at a time")
		}
	}
}

// subdomainPrefix lets a name end in a dash, as names of env sources may.
func subdomainPrefix(name string) []string { return apivalidation.NameIsDNSSubdomain(name, true) }

// checkKeyRef checks a reference to a key of a config map or secret.
func (c *podChecker) checkKeyRef(name, key string, path *field.Path) {
	c.invalid(path.Child("name"), name, apivalidation.NameIsDNSSubdomain(name, false)...)
	c.named(path.Child("key"), key, validation.IsConfigMapKey)
}

func (c *podChecker) checkFileKeyRef(r *corev1.FileKeySelector, path *field.Path) {
	c.named(path.Child("key"), r.Key, validation.IsRelaxedEnvVarName)
	c.named(path.Child("volumeName"), r.VolumeName, validation.IsDNS1123Label)
	c.nonEmpty(path.Child("path"), r.Path)
	c.checkNoBacksteps(path.Child("path"), r.Path)
}

// checkFileKeyVolumes checks that files with variables lie in empty directories
// of the pod.
func (c *podChecker) checkFileKeyVolumes() {
	c.eachContainer(func(ctr *corev1.Container, path *field.Path) {
		for i, v := range ctr.Env {
			if v.ValueFrom == nil || v.ValueFrom.FileKeyRef == nil {
				continue
			}
			name := v.ValueFrom.FileKeyRef.VolumeName
			at := path.Child("env").Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
			j := slices.IndexFunc(c.spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
			if j < 0 {
				c.add(field.NotFound(at, name))
			} else if c.spec.Volumes[j].EmptyDir == nil {
				c.invalid(at, name, "referenced volume must be of type emptyDir")
			}
		}
	})
}

// The pod's own fields that containers can be told of.
var (
	envFields = []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
		"spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
	fileFields  = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}
	knownFields = append(slices.Clone(envFields), "metadata.annotations", "metadata.labels",
		"spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host")
)

func (c *podChecker) checkFieldRef(r *corev1.ObjectFieldSelector, allowed []string, path *field.Path) {
	if r.APIVersion == "" {
		c.required(path.Child("apiVersion"), "")
		return
	}
	if r.FieldPath == "" {
		c.required(path.Child("fieldPath"), "")
		return
	}
	name, key, keyed := cutKey(r.FieldPath)
	if fault := fieldRefFault(r.APIVersion, r.FieldPath, name, keyed); fault != "" {
		c.invalid(path.Child("fieldPath"), r.FieldPath, "error converting fieldPath: "+fault)
		return
	}
	switch {
	case keyed && name == "metadata.annotations":
		lower := strings.ToLower(key)
		c.invalid(path, lower, validation.IsQualifiedName(lower)...)
	case keyed:
		c.invalid(path, key, validation.IsQualifiedName(key)...)
	default:
		if name == "spec.host" {
			name = "spec.nodeName"
		}
		oneOf(&c.problems, path.Child("fieldPath"), name, allowed...)
	}
}

// fieldRefFault says why a path is no field of pods at all.
func fieldRefFault(version, fieldPath, name string, keyed bool) string {
	switch {
	case version != "v1":
		return "unsupported pod version: " + version
	case keyed && name != "metadata.annotations" && name != "metadata.labels":
		return "field label does not support subscript: " + fieldPath
	case !keyed && !slices.Contains(knownFields, fieldPath):
		return "field label not supported: " + fieldPath
	}
	return ""
}

// cutKey splits a path such as metadata.labels['a'].
func cutKey(fieldPath string) (name, key string, keyed bool) {
	inner, ok := strings.CutSuffix(fieldPath, "']")
	if !ok {
		return fieldPath, "", false
	}
	name, key, ok = strings.Cut(inner, "['")
	if !ok || name == "" {
		return fieldPath, "", false
	}
	return name, key, true
}

var (
	resourceFields = []string{"limits.cpu", "limits.ephemeral-storage", "limits.memory",
		"requests.cpu", "requests.ephemeral-storage", "requests.memory"}
	byteDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
)

func (c *podChecker) checkResourceRef(r *corev1.ResourceFieldSelector, path *field.Path, inVolume bool) {
	huge := strings.HasPrefix(r.Resource, "limits.hugepages-") || strings.HasPrefix(r.Resource, "requests.hugepages-")
	switch {
	case inVolume && r.ContainerName == "":
		c.required(path.Child("containerName"), "")
	case r.Resource == "":
		c.required(path.Child("resource"), "")
	case !huge:
		oneOf(&c.problems, path.Child("resource"), r.Resource, resourceFields...)
	}
	c.checkDivisor(r, path.Child("divisor"))
}

func (c *podChecker) checkDivisor(r *corev1.ResourceFieldSelector, path *field.Path) {
	if r.Divisor.IsZero() {
		return
	}
	divisor := r.Divisor.String()
	_, name, _ := strings.Cut(r.Resource, ".")
	if name == "cpu" {
		if divisor != "1m" && divisor != "1" {
			c.invalid(path, r.Resource, "only divisor's values 1m and 1 are supported with the cpu resource")
		}
		return
	}
	what := map[string]string{"memory": "memory", "ephemeral-storage": "local ephemeral storage"}[name]
	if strings.HasPrefix(name, "hugepages-") {
		what = "hugepages"
	}
	if what != "" && !slices.Contains(byteDivisors, divisor) {
		c.invalid(path, r.Resource, fmt.Sprintf("only divisor's values %s are supported with the %s resource", strings.Join(byteDivisors, ", "), what))
	}
}
