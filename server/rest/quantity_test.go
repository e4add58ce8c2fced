package rest_test

import (
	"bytes"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/even-keel/evenkeel/server/kinds"
)

// TestQuantitiesInProtobuf: one that takes long to read is refused; what only
// looks like one, such as a UID or a checksum, is not.
func TestQuantitiesInProtobuf(t *testing.T) {
	api := newAPI(t)
	long := "1e-9999999"
	fits := resource.MustParse("1234567891") // as long as long
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		code   int
	}{
		"annotation": {func(p *corev1.Pod) { p.Annotations = map[string]string{"checksum": "4e1234567890", "long": long} }, http.StatusCreated},
		"owner's uid": {func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "2e123456-0000-4000-8000-000000000000"}}
		}, http.StatusCreated},
		"limit": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": fits}
		}, http.StatusBadRequest},
		"size of a volume": {func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &fits}}}}
		}, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
				ObjectMeta: metav1.ObjectMeta{GenerateName: "q-"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			}
			c.change(pod)
			var body bytes.Buffer
			if err := protobuf.NewSerializer(kinds.Scheme(), kinds.Scheme()).Encode(pod, &body); err != nil {
				t.Fatal(err)
			}
			sent := bytes.ReplaceAll(body.Bytes(), []byte(fits.String()), []byte(long))
			got := send(api, "POST", "/api/v1/namespaces/default/pods", "application/vnd.kubernetes.protobuf", "", sent)
			if got.Code != c.code {
				t.Errorf("%d %s", got.Code, got.Body)
			}
		})
	}
}
