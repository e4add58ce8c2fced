package client_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// theServer is shared by all tests; each has a namespace of its own.
var theServer *evenkeeltest.Server

func TestMain(m *testing.M) {
	evenkeeltest.MainWith(m, func(s *evenkeeltest.Server) { theServer = s })
}

// connect returns a connection, and a namespace for the test alone.
func connect(t testing.TB, opts ...client.Option) (*client.Conn, string) {
	t.Helper()
	return connectAs(t, theServer.Config(), opts...)
}

func connectAs(t testing.TB, cfg *rest.Config, opts ...client.Option) (*client.Conn, string) {
	t.Helper()
	conn, err := client.Connect(cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := client.Connect(theServer.Config())
	if err != nil {
		t.Fatal(err)
	}
	ns, err := client.Of[*corev1.Namespace](direct).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}})
	if err != nil {
		t.Fatal(err)
	}
	return conn, ns.Name
}

// jsonOnly is a configuration without protobuf.
func jsonOnly(cfg *rest.Config) *rest.Config {
	cfg.ContentType = "application/json"
	return cfg
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Data: data}
}

// makeMaps creates config maps that are called by a prefix and a number.
func makeMaps(t testing.TB, maps *client.Client[*corev1.ConfigMap], prefix string, n int) {
	t.Helper()
	for i := range n {
		if _, err := maps.Create(t.Context(), configMap(fmt.Sprintf("%s-%03d", prefix, i), map[string]string{"n": fmt.Sprint(i)})); err != nil {
			t.Fatal(err)
		}
	}
}

func must[T any](t testing.TB) func(v T, err error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func names[T client.Object](objects []T) string {
	var all []string
	for _, o := range objects {
		all = append(all, o.GetName())
	}
	return strings.Join(all, " ")
}
