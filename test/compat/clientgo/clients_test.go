// Package clientgo has client-go as a client of our server: typed clients in
// both encodings, dynamic and metadata clients, discovery, events, elections,
// and what a watch promises.
package clientgo

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // what matters is asserted
	os.Exit(m.Run())
}

// encodings are the media types in which typed clients speak.
var encodings = map[string]string{"json": runtime.ContentTypeJSON, "protobuf": runtime.ContentTypeProtobuf}

// each runs a test with a client of each encoding and a namespace of its own, on
// a server of each engine.
func each(t *testing.T, test func(t *testing.T, c kubernetes.Interface, ns string)) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		for name, media := range encodings {
			t.Run(name, func(t *testing.T) {
				c := clientset(t, speaking(s.Admin(), media))
				test(t, c, newNamespace(t, c))
			})
		}
	})
}

func speaking(config *rest.Config, media string) *rest.Config {
	config.ContentType = media
	if media != runtime.ContentTypeJSON {
		config.AcceptContentTypes = media // and nothing else
	}
	return config
}

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	return must(kubernetes.NewForConfig(config))(t)
}

func newNamespace(t *testing.T, c kubernetes.Interface) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "compat-"}}
	return must(c.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}))(t).Name
}

// must returns what a call returned, in a test that cannot go on without:
// must(call())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks that an error is of the kind that is tests for.
func refused(t *testing.T, what string, err error, is func(error) bool) {
	t.Helper()
	if err == nil || !is(err) {
		t.Errorf("%s: got error %v", what, err)
	}
}

func configMap(name string, data ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := 0; i+1 < len(data); i += 2 {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[data[i]] = data[i+1]
	}
	return cm
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "img:1"}}},
	}
}
