package kinds

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
)

func signingRequest(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return base64.StdEncoding.EncodeToString(block)
}

func TestCertificateUsagesAreSorted(t *testing.T) {
	if !slices.IsSorted(certificateUsages) {
		t.Error(certificateUsages)
	}
}

func TestCertificateRequests(t *testing.T) {
	request := signingRequest(t)
	runPolicyCases(t, map[string]policyCase{
		"valid": {
			resource: "certificatesigningrequests",
			doc:      `{"spec":{"request":"` + request + `","signerName":"example.com/a.b","usages":["client auth"],"expirationSeconds":600}}`,
		},
		"not a request": {resource: "certificatesigningrequests", doc: `{"spec":{"request":"eA==","signerName":"x","usages":["any","any"],"expirationSeconds":1}}`, want: []string{
			`spec.request: Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST`,
			`spec.signerName: Invalid value: "x": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
			`spec.usages[1]: Duplicate value: "any"`,
			`spec.expirationSeconds: Invalid value: 1: may not specify a duration less than 600 seconds (10 minutes)`,
		}},
		"nothing": {resource: "certificatesigningrequests", doc: `{"spec":{"request":"` + request + `"}}`, want: []string{
			`spec.signerName: Required value`,
			`spec.usages: Required value`,
		}},
		"a signer of old": {resource: "certificatesigningrequests", doc: `{"spec":{"request":"` + request + `","signerName":"kubernetes.io/legacy-unknown","usages":["any"]}}`, want: []string{
			`spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version`,
		}},
		"a signer without a domain": {resource: "certificatesigningrequests", doc: `{"spec":{"request":"` + request + `","signerName":"a/b","usages":["any"]}}`, want: []string{
			`spec.signerName: Invalid value: "a": should be a domain with at least two segments separated by dots`,
		}},
	})
}

func TestCertificateStatusAndApproval(t *testing.T) {
	k := policyKindOf(t, "certificatesigningrequests")
	approval := k.Subresources[0]
	tests := map[string]struct {
		approve   bool
		doc, old  string
		want      []string
		condition string // the first, with its reason
	}{
		"approved": {
			approve: true, doc: `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"r"}],"certificate":"eA=="}}`, old: `{}`,
			condition: "Approved r",
		},
		"approved and denied": {
			approve: true, doc: `{"status":{"conditions":[{"type":"Approved","status":"True"},{"type":"Denied","status":"False"}]}}`, old: `{}`, want: []string{
				`status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive`,
				`status.conditions[1].status: Unsupported value: "False": supported values: "True"`,
			},
			condition: "Approved ",
		},
		"approved by who issues": {
			doc: `{"status":{"conditions":[{"type":"Approved","status":"True"}]}}`, old: `{}`, want: []string{
				`status.conditions: Forbidden: updates may not add a condition of type "Approved"`,
			},
			condition: "Approved ",
		},
		"a verdict stays as it is": {
			doc:       `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"mine"}]}}`,
			old:       `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"theirs"}]}}`,
			condition: "Approved theirs",
		},
		"a verdict taken back": {
			approve: true, doc: `{}`, old: `{"status":{"conditions":[{"type":"Denied","status":"True"}]}}`, want: []string{
				`status.conditions: Forbidden: updates may not remove a condition of type "Denied"`,
			},
		},
		"not a certificate": {
			doc: `{"status":{"certificate":"eA=="}}`, old: `{}`, want: []string{
				`status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block`,
			},
		},
		"another certificate": {
			doc: `{}`, old: `{"status":{"certificate":"eA=="}}`, want: []string{
				`status.certificate: Forbidden: updates may not modify existing certificate content`,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			obj, old := policyObject(t, k, tt.doc), policyObject(t, k, tt.old)
			prepare, validate := k.PrepareStatus, k.ValidateStatus
			if tt.approve {
				prepare, validate = approval.Prepare, approval.Validate
			}
			prepare(obj, old)
			if d := cmp.Diff(append([]string{}, slices.Sorted(slices.Values(tt.want))...), policyCauses(validate(obj, old))); d != "" {
				t.Error(d)
			}
			status := obj.(*certificatesv1.CertificateSigningRequest).Status
			if tt.condition == "" {
				return
			}
			first := status.Conditions[0]
			if got := fmt.Sprintf("%s %s", first.Type, first.Reason); got != tt.condition {
				t.Errorf("first condition is %q, want %q", got, tt.condition)
			}
			if first.LastUpdateTime.IsZero() || first.LastTransitionTime.IsZero() {
				data, _ := json.Marshal(first)
				t.Errorf("no times: %s", data)
			}
			if tt.approve && len(status.Certificate) > 0 {
				t.Error("an approver set the certificate")
			}
		})
	}
}
