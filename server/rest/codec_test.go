package rest

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestAnAPIVersionThatCannotBeParsedIsRefused(t *testing.T) {
	c, kind := newCodec(scheme.Scheme), appsv1.SchemeGroupVersion.WithKind("Deployment")
	for body, want := range map[string]string{
		`{"apiVersion":"apps/v1/v1","kind":"Deployment"}`: "unexpected GroupVersion string: apps/v1/v1",
		`{"apiVersion":"apps/v1/v1"}`:                     "unexpected GroupVersion string: apps/v1/v1",
		`{"apiVersion":"apps/v2"}`:                        "no kind",
		`{"apiVersion":"apps/v1"}`:                        "",
		`{"kind":"Deployment"}`:                           "",
		`{}`:                                              "",
	} {
		_, _, err := c.decode(mediaJSON, []byte(body), kind, &appsv1.Deployment{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, not %q", body, err, want)
		}
	}
}
