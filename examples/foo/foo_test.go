package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/evenkeeltest/controlplane"
	"github.com/even-keel/evenkeel/examples/foo/api/v1alpha1"
	"github.com/even-keel/evenkeel/examples/internal/cluster"
	"github.com/even-keel/evenkeel/examples/internal/program"
)

// scene is a namespace of a server at which the controller is at work.
type scene struct {
	*testing.T
	conn        *client.Conn
	log         *program.Transcript
	namespace   string
	foos        *client.Client[*v1alpha1.Foo]
	deployments *client.Client[*appsv1.Deployment]
}

func (s *scene) key(name string) client.Key { return client.Key{Namespace: s.namespace, Name: name} }

// create makes a Foo of the scene's namespace.
func (s *scene) create(name, deployment string, replicas int32) *v1alpha1.Foo {
	s.Helper()
	foo := &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: deployment, Replicas: &replicas},
	}
	foo, err := s.foos.Create(s.Context(), foo)
	if err != nil {
		s.Fatal(err)
	}
	return foo
}

func (s *scene) patch(name string, spec map[string]any) {
	s.Helper()
	if _, err := s.foos.Patch(s.Context(), s.key(name), client.MergePatch(map[string]any{"spec": spec})); err != nil {
		s.Fatal(err)
	}
}

// mustDeploy waits for the Deployment of a Foo.
func (s *scene) mustDeploy(foo *v1alpha1.Foo, name string, replicas int32) *appsv1.Deployment {
	s.Helper()
	return cluster.Eventually(s.T, s.deployments, s.key(name), func(d *appsv1.Deployment) error {
		switch {
		case d == nil:
			return errors.New("there is none")
		case !controller.Controls(foo, d):
			return fmt.Errorf("owners: %v", d.OwnerReferences)
		case *d.Spec.Replicas != replicas:
			return fmt.Errorf("%d replicas", *d.Spec.Replicas)
		}
		return nil
	})
}

// mustTell waits for the status of a Foo.
func (s *scene) mustTell(name string, available int32) {
	s.Helper()
	cluster.Eventually(s.T, s.foos, s.key(name), func(foo *v1alpha1.Foo) error {
		if foo == nil || foo.Status.AvailableReplicas != available {
			return fmt.Errorf("it is %+v", foo)
		}
		return nil
	})
}

// setAvailable plays the controller of Deployments.
func (s *scene) setAvailable(name string, n int32) {
	s.Helper()
	status := client.MergePatch(map[string]any{"status": map[string]any{"replicas": n, "readyReplicas": n, "availableReplicas": n}})
	if _, err := s.deployments.Status().Patch(s.Context(), s.key(name), status); err != nil {
		s.Fatal(err)
	}
}

// stage is a namespace for a test.
func stage(t *testing.T, c *cluster.Cluster, p *program.Program, namespace string) *scene {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.Of[*corev1.Namespace](c.Conn).Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return &scene{t, c.Conn, &p.Err, namespace, client.Of[*v1alpha1.Foo](c.Conn), client.Of[*appsv1.Deployment](c.Conn)}
}

func start(t *testing.T, args ...string) *program.Program {
	t.Helper()
	return program.Run(t, func(ctx context.Context, p *program.Program) error { return run(ctx, args, &p.Err) })
}

// awaitDefinition waits until Foos are served.
func awaitDefinition(t *testing.T, conn *client.Conn) {
	t.Helper()
	kind := apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	definitions := client.Of[*apiextensionsv1.CustomResourceDefinition](conn, client.Kind(kind))
	cluster.Eventually(t, definitions, client.Key{Name: "foos.samplecontroller.k8s.io"}, func(crd *apiextensionsv1.CustomResourceDefinition) error {
		if crd == nil || !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			return errors.New("it is not established")
		}
		return nil
	})
}

func TestFoo(t *testing.T) {
	cluster.Each(t, func(t *testing.T, c *cluster.Cluster) {
		p := start(t, "--kubeconfig", c.Kubeconfig)
		p.Err.Expect(t, `error="no matches for kind \"Foo\" in version \"samplecontroller.k8s.io/v1alpha1\""`)
		if err := apply(t.Context(), c.Conn, definition); err != nil { // and from then on it works
			t.Fatal(err)
		}
		awaitDefinition(t, c.Conn)
		p.Err.Expect(t, `msg=running controller=foo`) // kube-apiserver serves a kind later than it says so
		for name, test := range map[string]func(*scene){
			"follows":  followsAFoo,
			"renames":  deletesWhatAFooNamesNoMore,
			"refuses":  refusesWhatIsNotItsOwn,
			"restores": restoresWhatOthersChange,
			"nameless": doesNotRetryWithoutAName,
			"deleted":  leavesAFooThatIsBeingDeleted,
		} {
			t.Run(name, func(t *testing.T) { test(stage(t, c, p, name)) })
		}
	})
}

func followsAFoo(s *scene) {
	foo := s.create("foo", "web", 2)
	s.mustDeploy(foo, "web", 2)
	cluster.Recorded(s.T, s.conn, s.key("foo"), "Normal Synced Foo synced successfully")
	untyped := client.Of[*unstructured.Unstructured](s.conn, client.Kind(foo.APIKind()))
	cluster.Eventually(s.T, untyped, s.key("foo"), func(foo *unstructured.Unstructured) error {
		if n, told, err := unstructured.NestedInt64(foo.Object, "status", "availableReplicas"); n != 0 || !told {
			return fmt.Errorf("it does not tell that none is available: %v, %v", foo.Object["status"], err)
		}
		return nil
	})
	s.setAvailable("web", 2)
	s.mustTell("foo", 2)
	s.patch("foo", map[string]any{"replicas": 3})
	s.mustDeploy(foo, "web", 3)
	for _, replicas := range []int32{0, 11} {
		_, err := s.foos.Patch(s.Context(), s.key("foo"), client.MergePatch(map[string]any{"spec": map[string]any{"replicas": replicas}}))
		if !client.IsInvalid(err) {
			s.Errorf("%d replicas: %v", replicas, err)
		}
	}
}

func deletesWhatAFooNamesNoMore(s *scene) {
	foo := s.create("foo", "old", 1)
	s.mustDeploy(foo, "old", 1)
	s.patch("foo", map[string]any{"deploymentName": "new"})
	s.mustDeploy(foo, "new", 1)
	s.mustBeGone("old")
}

func refusesWhatIsNotItsOwn(s *scene) {
	if _, err := s.deployments.Create(s.Context(), newDeployment(s.key("web"), new(int32(1)))); err != nil {
		s.Fatal(err)
	}
	foo := s.create("foo", "web", 5)
	cluster.Recorded(s.T, s.conn, s.key("foo"), `Warning ErrResourceExists Deployment "web" already exists and is not managed by Foo "foo"`)
	d, err := s.deployments.Get(s.Context(), s.key("web"))
	if err != nil || *d.Spec.Replicas != 1 || len(d.OwnerReferences) > 0 {
		s.Errorf("what is not its own is now %+v, %v", d, err)
	}
	if err := s.deployments.Delete(s.Context(), s.key("web")); err != nil {
		s.Fatal(err)
	}
	s.mustDeploy(foo, "web", 5) // it was tried again
	s.create("other", "web", 7)
	cluster.Recorded(s.T, s.conn, s.key("other"), `Warning ErrResourceExists Deployment "web" already exists and is not managed by Foo "other"`)
	s.mustDeploy(foo, "web", 5)
}

func restoresWhatOthersChange(s *scene) {
	foo := s.create("foo", "web", 2)
	d := s.mustDeploy(foo, "web", 2)
	d.Spec.Replicas = new(int32(9))
	if _, err := s.deployments.Update(s.Context(), d); err != nil {
		s.Fatal(err)
	}
	s.mustDeploy(foo, "web", 2)
	if err := s.deployments.Delete(s.Context(), s.key("web"), client.IfUID(d.UID)); err != nil {
		s.Fatal(err)
	}
	cluster.Eventually(s.T, s.deployments, s.key("web"), func(now *appsv1.Deployment) error {
		if now == nil || now.UID == d.UID {
			return errors.New("there is no new one")
		}
		return nil
	})
}

func doesNotRetryWithoutAName(s *scene) {
	s.create("foo", "", 1)
	s.log.Expect(s.T, `msg="failed, and is not tried again" controller=foo key=nameless/foo`)
	s.mustDeploy(s.create("later", "later", 1), "later", 1)
	if got := strings.Count(s.log.String(), "key=nameless/foo"); got != 1 {
		s.Errorf("the log tells %d times of a Foo that is not retried", got)
	}
	s.patch("foo", map[string]any{"deploymentName": "web"})
	cluster.Eventually(s.T, s.deployments, s.key("web"), exists)
}

// leavesAFooThatIsBeingDeleted: what the garbage collector deletes is not made again.
func leavesAFooThatIsBeingDeleted(s *scene) {
	foo := s.create("foo", "web", 1)
	s.mustDeploy(foo, "web", 1)
	if err := s.foos.Delete(s.Context(), s.key("foo"), client.Propagation(metav1.DeletePropagationForeground)); err != nil {
		s.Fatal(err)
	}
	cluster.Eventually(s.T, s.foos, s.key("foo"), func(foo *v1alpha1.Foo) error {
		if foo == nil || foo.DeletionTimestamp == nil {
			return errors.New("it is not being deleted")
		}
		return nil
	})
	s.mustDeploy(s.create("seen", "seen", 1), "seen", 1)
	if err := s.deployments.Delete(s.Context(), s.key("web")); err != nil {
		s.Fatal(err)
	}
	s.mustDeploy(s.create("later", "later", 1), "later", 1)
	if d, err := s.deployments.Get(s.Context(), s.key("web")); !client.IsNotFound(err) {
		s.Errorf("the Deployment of a Foo that is being deleted is there again: %v, %v", d, err)
	}
}

func exists(d *appsv1.Deployment) error {
	if d == nil {
		return errors.New("there is none")
	}
	return nil
}

func (s *scene) mustBeGone(name string) {
	s.Helper()
	cluster.Eventually(s.T, s.deployments, s.key(name), func(d *appsv1.Deployment) error {
		if d != nil {
			return errors.New("it is still there")
		}
		return nil
	})
}

func TestInstallMakesAFreshServerWork(t *testing.T) {
	env := evenkeeltest.Start(t)
	p := start(t, "--kubeconfig", env.Kubeconfig(), "--install")
	awaitDefinition(t, env.Conn())
	env.ApplyFiles("manifests/example.yaml")
	s := &scene{t, env.Conn(), &p.Err, "default", client.Of[*v1alpha1.Foo](env.Conn()), client.Of[*appsv1.Deployment](env.Conn())}
	foo, err := s.foos.Get(t.Context(), s.key("example"))
	if err != nil {
		t.Fatal(err)
	}
	s.mustDeploy(foo, "web", 2)
}

// Nobody plays anything here: the Deployment's pods run on a simulated node.
func TestAFooBecomesReady(t *testing.T) {
	env := evenkeeltest.Start(t, evenkeeltest.CRDs("manifests/crd.yaml"))
	controlplane.Run(env, controlplane.Options{})
	start(t, "--kubeconfig", env.Kubeconfig())
	env.ApplyFiles("manifests/example.yaml")
	evenkeeltest.Eventually(env, client.Key{Namespace: "default", Name: "example"}, func(foo *v1alpha1.Foo) error {
		if got := foo.Status.AvailableReplicas; got != *foo.Spec.Replicas {
			return fmt.Errorf("%d of %d replicas are available", got, *foo.Spec.Replicas)
		}
		return nil
	})
	if err := client.Of[*v1alpha1.Foo](env.Conn()).Delete(t.Context(), client.Key{Namespace: "default", Name: "example"}); err != nil {
		t.Fatal(err)
	}
	evenkeeltest.EventuallyAll(env, func(pods []*corev1.Pod) error {
		if len(pods) > 0 {
			return fmt.Errorf("there still are %d pods", len(pods))
		}
		return nil
	})
}

func TestErrorsTellTheNextStep(t *testing.T) {
	lost := program.Unreachable(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("XDG_DATA_HOME", "")
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no server":        {[]string{"--kubeconfig", lost}, []string{"connection refused", "make run"}},
		"no configuration": {nil, []string{"no cluster is configured", "--kubeconfig"}},
		"an argument":      {[]string{"install"}, []string{`["install"]: it takes no arguments`, "--help"}},
		"another flag":     {[]string{"--instal"}, []string{"not defined: -instal"}},
		"half a lease":     {[]string{"--leader", "foo"}, []string{"namespace/name"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), test.args, &out)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error %v does not say %q", err, want)
				}
			}
		})
	}
}

func TestHelpHasExamples(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Usage:", "Examples:", "foo --install", "-kubeconfig file"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help does not have %q:\n%s", want, out.String())
		}
	}
}
