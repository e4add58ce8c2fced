package kinds

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *podChecker) checkDownwardFile(f *corev1.DownwardAPIVolumeFile, path *field.Path) {
	c.nonEmpty(path.Child("path"), f.Path)
	c.checkFilePath(path.Child("path"), f.Path)
	c.checkMode(path.Child("mode"), f.Mode)
	switch {
	case f.FieldRef != nil:
		c.checkFieldRef(f.FieldRef, fileFields, path.Child("fieldRef"))
		if f.ResourceFieldRef != nil {
			c.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
		}
	case f.ResourceFieldRef != nil:
		c.checkResourceRef(f.ResourceFieldRef, path.Child("resourceFieldRef"), true)
	default:
		c.required(path, "one of fieldRef and resourceFieldRef is required")
	}
}

// projection checks one projected volume, whose sources share its paths.
type projection struct {
	*podChecker
	path  *field.Path
	paths seen
}

func (c *podChecker) checkProjected(s *corev1.ProjectedVolumeSource, path *field.Path) {
	c.checkMode(path.Child("defaultMode"), s.DefaultMode)
	p := projection{c, path, seen{}}
	for i := range s.Sources {
		p.checkSource(&s.Sources[i], path.Child("sources").Index(i))
	}
}

func (p projection) checkSource(s *corev1.VolumeProjection, path *field.Path) {
	sources := 0
	if s.Secret != nil {
		sources++
		p.checkItems(s.Secret.Name, s.Secret.Items, path.Child("secret"))
	}
	if s.ConfigMap != nil {
		sources++
		p.checkItems(s.ConfigMap.Name, s.ConfigMap.Items, path.Child("configMap"))
	}
	if s.DownwardAPI != nil {
		sources++
		for i := range s.DownwardAPI.Items {
			f := &s.DownwardAPI.Items[i]
			p.checkDownwardFile(f, path.Child("downwardAPI"))
			p.claim(f.Path, f.Path)
		}
	}
	if s.ServiceAccountToken != nil {
		sources++
		p.checkToken(s.ServiceAccountToken, path.Child("serviceAccountToken"))
	}
	if s.ClusterTrustBundle != nil {
		sources++
		p.checkTrustBundle(s.ClusterTrustBundle, path.Child("clusterTrustBundle"))
	}
	if s.PodCertificate != nil {
		sources++
		p.checkCertificate(s.PodCertificate, path.Child("podCertificate"))
	}
	if sources > 1 {
		p.forbidden(path, "may not specify more than 1 volume type per source")
	}
}

// claim takes a path for a source; value is what the error shows.
func (p projection) claim(path, value string) {
	if path != "" && p.paths.again(path) {
		p.invalid(p.path, value, "conflicting duplicate paths")
	}
}

func (p projection) checkItems(name string, items []corev1.KeyToPath, path *field.Path) {
	p.nonEmpty(path.Child("name"), name)
	for i := range items {
		p.checkKeyToPath(&items[i], path.Child("items").Index(i))
		p.claim(items[i].Path, name)
	}
}

func (p projection) checkToken(t *corev1.ServiceAccountTokenProjection, path *field.Path) {
	switch s := t.ExpirationSeconds; {
	case s == nil:
		p.required(path.Child("expirationSeconds"), "")
	case *s < 600:
		p.invalid(path.Child("expirationSeconds"), *s, "may not specify a duration less than 10 minutes")
	case *s > 1<<32:
		p.invalid(path.Child("expirationSeconds"), *s, "may not specify a duration larger than 2^32 seconds")
	}
	// The path that errors name is the volume's, not the source's.
	p.nonEmpty(p.path.Child("path"), t.Path)
	p.checkFilePath(p.path.Child("path"), t.Path)
}

func (p projection) checkTrustBundle(b *corev1.ClusterTrustBundleProjection, path *field.Path) {
	switch {
	case b.Name != nil && b.SignerName != nil:
		p.invalid(path, b, "only one of name and signerName may be used")
	case b.Name != nil:
		if *b.Name == "" {
			p.required(path.Child("name"), "must be a valid object name")
		}
		if b.LabelSelector != nil {
			p.invalid(path.Child("labelSelector"), b.LabelSelector, "labelSelector must be unset if name is specified")
		}
	case b.SignerName != nil:
		if *b.SignerName == "" {
			p.required(path.Child("signerName"), "must be a valid signer name")
		}
		p.checkSigner(*b.SignerName, path.Child("signerName"))
		p.add(metavalidation.ValidateLabelSelector(b.LabelSelector, metavalidation.LabelSelectorValidationOptions{}, path.Child("labelSelector"))...)
	default:
		p.required(path, "either name or signerName must be specified")
	}
	p.nonEmpty(path.Child("path"), b.Path)
	p.checkFilePath(path.Child("path"), b.Path)
	p.claim(b.Path, b.Path)
}

func (p projection) checkCertificate(s *corev1.PodCertificateProjection, path *field.Path) {
	p.checkSigner(s.SignerName, path.Child("signerName"))
	oneOf(&p.problems, path.Child("keyType"), s.KeyType, "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
	if most, e := maxCertificateSeconds(s.SignerName), s.MaxExpirationSeconds; e != nil && *e < 3600 {
		p.invalid(path.Child("maxExpirationSeconds"), *e, "if provided, maxExpirationSeconds must be >= 3600")
	} else if e != nil && *e > most {
		p.invalid(path.Child("maxExpirationSeconds"), *e, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", most))
	}
	paths := 0
	for _, f := range []struct{ name, path string }{
		{"credentialBundlePath", s.CredentialBundlePath},
		{"keyPath", s.KeyPath},
		{"certificateChainPath", s.CertificateChainPath},
	} {
		if f.path == "" {
			continue
		}
		paths++
		p.checkFilePath(path.Child(f.name), f.path)
		p.claim(f.path, f.path)
	}
	if paths == 0 {
		p.required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
	}
}

// maxCertificateSeconds is a day for the signers of Kubernetes, 91 for others.
func maxCertificateSeconds(signer string) int32 {
	const day = 24 * 60 * 60
	host, _, _ := strings.Cut(signer, "/")
	if host == "kubernetes.io" || strings.HasSuffix(host, ".kubernetes.io") {
		return day
	}
	return 91 * day
}

func (p projection) checkSigner(name string, path *field.Path) {
	if name == "" {
		p.required(path, "")
		return
	}
	if domain, rest, ok := strings.Cut(name, "/"); !ok || domain == "" || rest == "" {
		p.invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
	}
}
