package kinds

import (
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

func certificateRequestKind() *Kind {
	gvk := certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest")
	return &Kind{
		GVK:        gvk,
		Resource:   "certificatesigningrequests",
		Singular:   "certificatesigningrequest",
		ShortNames: []string{"csr"},
		New:        newOf[certificatesv1.CertificateSigningRequest],
		NewList:    newOf[certificatesv1.CertificateSigningRequestList],

		ValidName: func(string, bool) []string { return nil },
		HasStatus: true,
		Subresources: []Subresource{{
			Name:     "approval",
			GVK:      gvk,
			Verbs:    []string{"get", "patch", "update"},
			Prepare:  eachPair(prepareCertificateApproval),
			Validate: checkPair(validateCertificateApproval),
		}},

		SetRequester:  setCertificateRequester,
		PrepareUpdate: eachPair(func(r, old *certificatesv1.CertificateSigningRequest) { r.Spec = *old.Spec.DeepCopy() }),
		PrepareStatus: eachPair(prepareCertificateStatus),

		Validate:       check(validateCertificateRequest),
		ValidateStatus: checkPair(validateCertificateStatus),

		Fields: []string{"spec.signerName"},
		FieldSet: fieldSet(func(r *certificatesv1.CertificateSigningRequest) fields.Set {
			return fields.Set{"spec.signerName": r.Spec.SignerName}
		}),

		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			ageColumn(),
			column("SignerName", "The signer that is asked."),
			column("Requestor", "The user that asks."),
			column("RequestedDuration", "How long the certificate should be valid."),
			column("Condition", "How far the request has got."),
		},
		Cells: cells(certificateRequestCells),
	}
}

func certificateRequestCells(r *certificatesv1.CertificateSigningRequest, now metav1.Time) []any {
	requested := "<none>"
	if s := r.Spec.ExpirationSeconds; s != nil {
		requested = duration.HumanDuration(time.Duration(*s) * time.Second)
	}
	return []any{
		r.Name, Age(r.CreationTimestamp, now), orElse(r.Spec.SignerName, "<none>"),
		r.Spec.Username, requested, certificateRequestCondition(&r.Status),
	}
}

func certificateRequestCondition(s *certificatesv1.CertificateSigningRequestStatus) string {
	has := map[certificatesv1.RequestConditionType]bool{}
	for _, c := range s.Conditions {
		has[c.Type] = true
	}
	words := []string{"Pending"}
	switch {
	case has[certificatesv1.CertificateDenied]:
		words[0] = "Denied"
	case has[certificatesv1.CertificateApproved]:
		words[0] = "Approved"
	}
	if has[certificatesv1.CertificateFailed] {
		words = append(words, "Failed")
	}
	if len(s.Certificate) > 0 {
		words = append(words, "Issued")
	}
	return strings.Join(words, ",")
}

func setCertificateRequester(obj runtime.Object, user authenticationv1.UserInfo) {
	spec := &obj.(*certificatesv1.CertificateSigningRequest).Spec
	spec.Username, spec.UID, spec.Groups, spec.Extra = user.Username, user.UID, user.Groups, nil
	if len(user.Extra) > 0 {
		spec.Extra = make(map[string]certificatesv1.ExtraValue, len(user.Extra))
		for k, v := range user.Extra {
			spec.Extra[k] = certificatesv1.ExtraValue(v)
		}
	}
}

// prepareCertificateApproval lets the conditions change, and nothing else.
func prepareCertificateApproval(r, old *certificatesv1.CertificateSigningRequest) {
	stampCertificateConditions(r, old)
	conditions := r.Status.Conditions
	r.Spec, r.Status = *old.Spec.DeepCopy(), *old.Status.DeepCopy()
	r.Status.Conditions = conditions
}

// prepareCertificateStatus keeps the verdict as it is, unless the request adds
// or removes one: validation refuses that.
func prepareCertificateStatus(r, old *certificatesv1.CertificateSigningRequest) {
	for _, verdict := range certificateVerdicts {
		before, now := certificateConditions(old, verdict), certificateConditions(r, verdict)
		if len(before) != len(now) {
			continue
		}
		for i := range now {
			*now[i] = *before[i].DeepCopy()
		}
	}
	stampCertificateConditions(r, old)
}

// stampCertificateConditions fills in the times that a client left out: a
// condition whose status is as before has not passed on since.
func stampCertificateConditions(r, old *certificatesv1.CertificateSigningRequest) {
	now := metav1.Now()
	for i := range r.Status.Conditions {
		c := &r.Status.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = now
		}
		if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = certificateTransition(c, old, now)
		}
	}
}

func certificateTransition(c *certificatesv1.CertificateSigningRequestCondition, old *certificatesv1.CertificateSigningRequest, now metav1.Time) metav1.Time {
	for _, before := range certificateConditions(old, c.Type) {
		if before.Status == c.Status && !before.LastTransitionTime.IsZero() {
			return before.LastTransitionTime
		}
	}
	return now
}

// certificateVerdicts are the conditions that only an approver sets.
var certificateVerdicts = []certificatesv1.RequestConditionType{
	certificatesv1.CertificateApproved, certificatesv1.CertificateDenied,
}

func certificateConditions(r *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType) []*certificatesv1.CertificateSigningRequestCondition {
	var found []*certificatesv1.CertificateSigningRequestCondition
	for i := range r.Status.Conditions {
		if r.Status.Conditions[i].Type == t {
			found = append(found, &r.Status.Conditions[i])
		}
	}
	return found
}
