package informer_test

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// theServer is shared by all tests; each has a namespace of its own.
var theServer *evenkeeltest.Server

func TestMain(m *testing.M) {
	evenkeeltest.MainWith(m, func(s *evenkeeltest.Server) { theServer = s })
}

// connect returns a connection, through a transport if one is given.
func connect(t testing.TB, through func(http.RoundTripper) http.RoundTripper) *client.Conn {
	t.Helper()
	cfg := theServer.Config()
	cfg.Wrap(through)
	conn, err := client.Connect(cfg, client.Retries(0))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// namespace makes a namespace for a test alone.
func namespace(t testing.TB, conn *client.Conn) string {
	t.Helper()
	ns, err := client.Of[*corev1.Namespace](conn).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Data: data}
}
