package operator_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/examples/cloudmanager/operator"
	"github.com/even-keel/evenkeel/test/peer"
)

// These tests look at what is there in the end, and never at the calls that led to it.
// They say themselves how many replicas are ready, for neither server has controllers.

// servers are those that the operator is tested on.
var servers = map[string]func(*testing.T) *rest.Config{
	"evenkeel":       func(t *testing.T) *rest.Config { return evenkeeltest.Start(t).Config() },
	"kube-apiserver": func(t *testing.T) *rest.Config { return peer.Start(t).Config() },
}

func TestTheOperator(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		for name, test := range map[string]func(*world){
			"parts come up in order":                         inOrder,
			"a part that loses its majority is waited for":   degraded,
			"changes are followed":                           followed,
			"what others change is changed back":             defended,
			"what was renamed goes":                          renamed,
			"names that are swapped":                         swapped,
			"objects of others stay theirs":                  foreign,
			"two with the same names do not share":           rivals,
			"an operator that starts anew goes on":           restarted,
			"an application that is being deleted is let be": deleted,
			"the phase is in the table":                      printed,
		} {
			t.Run(name, func(t *testing.T) { test(s.world(t)) })
		}
	})
}

func TestBadSpecsAreRefused(t *testing.T) {
	each(t, refusedBySchema)
}

// TestBadSpecsAreToldOf: the definition that is installed has no schema.
func TestBadSpecsAreToldOf(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		s.dropSchema(t)
		for name, bad := range badSpecs {
			t.Run(name, func(t *testing.T) { toldOf(s.world(t), bad) })
		}
		t.Run("storage that cannot be changed", func(t *testing.T) { refusedByServer(s.world(t)) })
	})
}

// server is one that tests share; each has a namespace of its own.
type server struct {
	cfg   *rest.Config
	conn  *client.Conn
	tests int
}

// each runs a test on each of the servers, with the definition installed.
func each(t *testing.T, test func(*testing.T, *server)) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			s := &server{cfg: start(t)}
			var err error
			if s.conn, err = client.Connect(s.cfg); err != nil {
				t.Fatal(err)
			}
			s.install(t)
			test(t, s)
		})
	}
}

// install installs the definition, and waits until it is served.
func (s *server) install(t *testing.T) {
	t.Helper()
	if err := operator.Install(t.Context(), s.conn); err != nil {
		t.Fatal(err)
	}
	poll(t, func() error {
		_, _, err := managers(s).All(t.Context())
		return err
	})
}

func definitions(s *server) *client.Client[*unstructured.Unstructured] {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	return client.Of[*unstructured.Unstructured](s.conn, client.Kind(crd.GroupVersionKind()))
}

// dropSchema has the server take anything, and waits until it does.
func (s *server) dropSchema(t *testing.T) {
	t.Helper()
	open := client.JSONPatch(`[{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema",
		"value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]`)
	key := client.Key{Name: "cloudmanagers.cloudmanagercontroller.huayun.com"}
	if _, err := definitions(s).Patch(t.Context(), key, open); err != nil {
		t.Fatal(err)
	}
	bad := application()
	bad.Namespace, bad.Spec.DB.Storage.Size = "default", "lots"
	poll(t, func() error {
		_, err := managers(s).Create(t.Context(), bad, client.Dry())
		return err
	})
}
