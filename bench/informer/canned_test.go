package informer

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/even-keel/evenkeel/bench/cache/pods"
)

const (
	syncPods = 50_000
	revision = "20000000"
	proto    = "application/vnd.kubernetes.protobuf"
)

// canned is a server that knows one list of pods, and nothing ever happens to it.
type canned struct {
	// stream is the pods as a watch sends them, list as a list does.
	stream, list []byte
	media        string
}

// newCanned encodes the answers: pieces of at most a few hundred MB in memory.
func newCanned(b *testing.B, media string, n int) *canned {
	b.Helper()
	c := &canned{media: media}
	all := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: revision}}
	for i := range n {
		pod := pods.Make(i)
		all.Items = append(all.Items, *pod)
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		c.event(b, "ADDED", pod)
	}
	c.event(b, "BOOKMARK", &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: revision, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	})
	c.list = c.encode(b, all, all.TypeMeta)
	return c
}

func (c *canned) event(b *testing.B, kind string, pod *corev1.Pod) {
	e := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: c.encode(b, pod, pod.TypeMeta)}}
	if c.media == proto {
		data, err := e.Marshal()
		if err != nil {
			b.Fatal(err)
		}
		c.stream = append(binary.BigEndian.AppendUint32(c.stream, uint32(len(data))), data...)
		return
	}
	c.stream = append(c.stream, `{"type":"`+kind+`","object":`...)
	c.stream = append(append(c.stream, e.Object.Raw...), "}\n"...)
}

func (c *canned) encode(b *testing.B, obj interface{ Marshal() ([]byte, error) }, kind metav1.TypeMeta) []byte {
	if c.media != proto {
		data, err := json.Marshal(obj)
		if err != nil {
			b.Fatal(err)
		}
		return data
	}
	raw, err := obj.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind}, Raw: raw}
	data, err := envelope.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	return append([]byte("k8s\x00"), data...)
}

func (c *canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/api/v1/pods") {
		http.NotFound(w, r)
		return
	}
	q := r.URL.Query()
	if q.Get("watch") == "" {
		w.Header().Set("Content-Type", c.media)
		_, _ = w.Write(c.list)
		return
	}
	media := c.media
	if media == proto {
		media += ";stream=watch"
	}
	w.Header().Set("Content-Type", media)
	if q.Get("sendInitialEvents") == "true" {
		_, _ = w.Write(c.stream)
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func serve(b *testing.B, c *canned) string {
	s := httptest.NewServer(c)
	b.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}
