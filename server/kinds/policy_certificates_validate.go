package kinds

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// certificateUsages are all that a certificate may be for, sorted.
var certificateUsages = []certificatesv1.KeyUsage{
	certificatesv1.UsageAny, certificatesv1.UsageCertSign, certificatesv1.UsageClientAuth,
	certificatesv1.UsageCodeSigning, certificatesv1.UsageContentCommitment, certificatesv1.UsageCRLSign,
	certificatesv1.UsageDataEncipherment, certificatesv1.UsageDecipherOnly, certificatesv1.UsageDigitalSignature,
	certificatesv1.UsageEmailProtection, certificatesv1.UsageEncipherOnly, certificatesv1.UsageIPsecEndSystem,
	certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser, certificatesv1.UsageKeyAgreement,
	certificatesv1.UsageKeyEncipherment, certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC,
	certificatesv1.UsageOCSPSigning, certificatesv1.UsageSMIME, certificatesv1.UsageServerAuth,
	certificatesv1.UsageSigning, certificatesv1.UsageTimestamping,
}

const legacySignerName = "kubernetes.io/legacy-unknown"

func validateCertificateRequest(r *certificatesv1.CertificateSigningRequest) field.ErrorList {
	var p problems
	path, spec := field.NewPath("spec"), &r.Spec
	if err := checkSigningRequest(spec.Request); err != nil {
		p.invalid(path.Child("request"), spec.Request, err.Error())
	}
	validateCertificateUsages(&p, spec.Usages, path.Child("usages"))
	if spec.SignerName == legacySignerName {
		p.invalid(path.Child("signerName"), spec.SignerName, "the legacy signerName is not allowed via this API version")
	} else {
		validateSignerName(&p, spec.SignerName, path.Child("signerName"))
	}
	if s := spec.ExpirationSeconds; s != nil && *s < 600 {
		p.invalid(path.Child("expirationSeconds"), *s, "may not specify a duration less than 600 seconds (10 minutes)")
	}
	return p.list
}

func validateCertificateUsages(p *problems, usages []certificatesv1.KeyUsage, path *field.Path) {
	if len(usages) == 0 {
		p.required(path, "")
	}
	for i, u := range usages {
		oneOf(p, path.Index(i), u, certificateUsages...)
	}
	before := seen{}
	for i, u := range usages {
		if before.again(string(u)) {
			p.duplicate(path.Index(i), u)
		}
	}
}

func checkSigningRequest(data []byte) error {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	return request.CheckSignature()
}

// validateSignerName checks a name such as example.com/signer.
func validateSignerName(p *problems, name string, path *field.Path) {
	if name == "" {
		p.required(path, "")
		return
	}
	domain, rest, _ := strings.Cut(name, "/")
	if strings.Count(name, "/") != 1 {
		p.invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
		return
	}
	const longestDomain = validation.DNS1123SubdomainMaxLength
	if len(domain) > longestDomain {
		p.add(field.TooLong(path, "", longestDomain))
	}
	validateSignerLabels(p, domain, validation.IsDNS1123Label, path)
	if !strings.Contains(domain, ".") {
		p.invalid(path, domain, "should be a domain with at least two segments separated by dots")
	}
	validateSignerLabels(p, rest, validation.IsDNS1123Subdomain, path)
	const longest = longestDomain + validation.DNS1123SubdomainMaxLength + validation.DNS1123LabelMaxLength + 2
	if len(name) > longest {
		p.add(field.TooLong(path, "", longest))
	}
}

// validateSignerLabels reports the first bad label only.
func validateSignerLabels(p *problems, s string, valid func(string) []string, path *field.Path) {
	for label := range strings.SplitSeq(s, ".") {
		wrong := valid(label)
		for _, w := range wrong {
			p.invalid(path, s, fmt.Sprintf("validating label %q: %s", label, w))
		}
		if len(wrong) > 0 {
			return
		}
	}
}

func validateCertificateStatus(r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	p := certificateChanges(r, old)
	path := field.NewPath("status", "conditions")
	for _, verdict := range certificateVerdicts {
		if len(certificateConditions(r, verdict)) > len(certificateConditions(old, verdict)) {
			p.forbidden(path, fmt.Sprintf("updates may not add a condition of type %q", verdict))
		}
	}
	before := old.Status.Certificate
	if len(before) > 0 && !bytes.Equal(r.Status.Certificate, before) {
		p.forbidden(field.NewPath("status", "certificate"), "updates may not modify existing certificate content")
	}
	return p.list
}

func validateCertificateApproval(r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	return certificateChanges(r, old).list
}

// certificateChanges checks what the status and the approval have in common.
func certificateChanges(r, old *certificatesv1.CertificateSigningRequest) *problems {
	p := &problems{}
	path := field.NewPath("status")
	validateCertificateConditions(p, r, path.Child("conditions"))
	if !bytes.Equal(r.Status.Certificate, old.Status.Certificate) {
		if err := checkIssuedCertificate(r.Status.Certificate); err != nil {
			p.invalid(path.Child("certificate"), "<certificate data>", err.Error())
		}
	}
	for _, t := range append(slices.Clone(certificateVerdicts), certificatesv1.CertificateFailed) {
		if len(certificateConditions(r, t)) < len(certificateConditions(old, t)) {
			p.forbidden(path.Child("conditions"), fmt.Sprintf("updates may not remove a condition of type %q", t))
		}
	}
	return p
}

func validateCertificateConditions(p *problems, r *certificatesv1.CertificateSigningRequest, path *field.Path) {
	before := seen{}
	opposite := map[certificatesv1.RequestConditionType]string{
		certificatesv1.CertificateApproved: string(certificatesv1.CertificateDenied),
		certificatesv1.CertificateDenied:   string(certificatesv1.CertificateApproved),
	}
	for i, c := range r.Status.Conditions {
		at := path.Index(i)
		p.nonEmpty(at.Child("type"), string(c.Type))
		validateCertificateConditionStatus(p, c, at.Child("status"))
		if other, ok := opposite[c.Type]; ok && before[other] {
			p.invalid(path, string(c.Type), "Approved and Denied conditions are mutually exclusive")
		}
		if before.again(string(c.Type)) {
			p.duplicate(at.Child("type"), c.Type)
		}
	}
}

func validateCertificateConditionStatus(p *problems, c certificatesv1.CertificateSigningRequestCondition, path *field.Path) {
	switch c.Type {
	case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
		chosen(p, path, c.Status, corev1.ConditionTrue)
	default:
		chosen(p, path, c.Status, corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)
	}
}

// checkIssuedCertificate wants PEM blocks of certificates only; text around
// them is fine.
func checkIssuedCertificate(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	found := false
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		}
		if len(block.Headers) != 0 {
			return errors.New("no PEM block headers are permitted")
		}
		certificates, err := x509.ParseCertificates(block.Bytes)
		if err != nil {
			return err
		}
		if len(certificates) == 0 {
			return errors.New("found CERTIFICATE PEM block containing 0 certificates")
		}
		found = true
	}
	if !found {
		return errors.New("must contain at least one CERTIFICATE PEM block")
	}
	return nil
}
