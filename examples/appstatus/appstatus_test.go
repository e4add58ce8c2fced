package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/examples/internal/program"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

const shopNamespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"

// shop is a namespace of a server that appstatus looks at.
type shop struct {
	t    *testing.T
	env  *evenkeeltest.Env
	conn *client.Conn
	*program.Program
	typed io.Writer
}

func begin(t *testing.T, args ...string) *shop {
	t.Helper()
	env := evenkeeltest.Start(t)
	env.Apply(shopNamespace)
	kubeconfig, conn := env.Kubeconfig(), env.Conn()
	args = append([]string{"--kubeconfig", kubeconfig, "--label", "app"}, args...)
	stdin, typed := io.Pipe()
	t.Cleanup(func() { _ = typed.Close() })
	return &shop{t: t, env: env, conn: conn, typed: typed, Program: program.Run(t, func(ctx context.Context, p *program.Program) error {
		return run(ctx, args, stdin, &p.Out, &p.Err)
	})}
}

func (s *shop) say(line string) {
	s.t.Helper()
	if _, err := fmt.Fprintln(s.typed, line); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) expect(line string) {
	s.t.Helper()
	s.Out.Expect(s.t, line)
}

func (s *shop) deploy(name, app string) {
	s.t.Helper()
	three, labels := int32(3), map[string]string{"app": app}
	_, err := client.Of[*appsv1.Deployment](s.conn).In("shop").Create(s.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &three, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
			},
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// setReady writes a deployment's status, as its controller would.
func (s *shop) setReady(name string, n int) {
	s.t.Helper()
	status := client.Sub[*appsv1.Deployment](client.Of[*appsv1.Deployment](s.conn).In("shop"), "status")
	change := map[string]any{"status": map[string]any{"replicas": 3, "readyReplicas": n}}
	if _, err := status.Patch(s.t.Context(), client.Key{Name: name}, client.MergePatch(change)); err != nil {
		s.t.Fatal(err)
	}
}

// move makes a deployment another application's.
func (s *shop) move(name, app string) {
	s.t.Helper()
	change := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": app}}}
	if _, err := client.Of[*appsv1.Deployment](s.conn).In("shop").Patch(s.t.Context(), client.Key{Name: name}, client.MergePatch(change)); err != nil {
		s.t.Fatal(err)
	}
}

func TestTablesFollowTheObjectsOfAnApplication(t *testing.T) {
	s := begin(t, "deployments.apps")
	s.deploy("web", "shop")
	s.expect("shop Deployment shop/web no 0/3 ready")
	s.setReady("web", 2)
	s.expect("shop Deployment shop/web no 2/3 ready")
	s.move("web", "store")
	s.expect("shop Deployment shop/web - gone")
	s.expect("store Deployment shop/web no 2/3 ready")
	if err := client.Of[*appsv1.Deployment](s.conn).Delete(t.Context(), client.Key{Namespace: "shop", Name: "web"}); err != nil {
		t.Fatal(err)
	}
	s.expect("store Deployment shop/web - gone")
}

func TestKindsComeAndGoWhileItRuns(t *testing.T) {
	s := begin(t, "deployments.apps", "widgets.v1.example.com")
	s.deploy("web", "shop")
	s.expect("shop Deployment shop/web no 0/3 ready")
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "prices", Labels: map[string]string{"app": "shop"}}}
	if _, err := client.Of[*corev1.ConfigMap](s.conn).In("shop").Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	s.say("add configmaps")
	s.expect("shop ConfigMap shop/prices yes exists")
	s.say("tables")
	s.expect("shop: 1 of 2 ready")
	s.expect("KIND NAMESPACE NAME READY STATE")
	s.expect("ConfigMap shop prices yes exists")
	s.say("kinds")
	s.expect("configmaps 1 objects")
	s.expect("widgets.v1.example.com waiting for the kind to exist")
	s.say("remove deployments.apps")
	s.expect("shop Deployment shop/web - gone")
	s.say("remove deployments.apps")
	s.expect("deployments.apps is not watched;")
	s.say("add deployments.apps")
	s.say("remove configmaps")
	s.expect("shop ConfigMap shop/prices - gone")
	s.say("add nonsense")
	s.expect("the server has no nonsense in v1;")
	s.say("add widgets.example.com")
	s.expect("as in widgets.v1.example.com")
	s.say("dance")
	s.expect(`"dance" is no command:`)
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestCustomKindsComeAndGoByThemselves(t *testing.T) {
	s := begin(t, "--crds", "pods")
	s.env.Apply(widgets, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: left, namespace: shop, labels: {app: shop}},
		status: {conditions: [{type: Ready, status: "False", reason: Painting}]}}`)
	s.expect("shop Widget shop/left no Painting")
	crds := client.Of[object](s.conn, client.OfResource(definitions))
	if err := crds.Delete(t.Context(), client.Key{Name: "widgets.example.com"}); err != nil {
		t.Fatal(err)
	}
	s.expect("shop Widget shop/left - gone")
}

func TestQuitEnds(t *testing.T) {
	kubeconfig := evenkeeltest.Start(t).Kubeconfig()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--kubeconfig", kubeconfig}, strings.NewReader("kinds\nquit\n"), &out, &out); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"deployments.apps", "statefulsets.apps", "services", "pods"} {
		if !strings.Contains(out.String(), kind) {
			t.Errorf("%s is not among the kinds:\n%s", kind, out.String())
		}
	}
}

func TestErrorsTellTheNextStep(t *testing.T) {
	lost := program.Unreachable(t)
	kubeconfig := evenkeeltest.Start(t).Kubeconfig()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("XDG_DATA_HOME", "")
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no server":        {[]string{"--kubeconfig", lost}, []string{"connection refused", "make run"}},
		"no configuration": {nil, []string{"no cluster is configured", "--kubeconfig"}},
		"no such kind":     {[]string{"--kubeconfig", kubeconfig, "pod"}, []string{"the server has no pod in v1", "deployments.apps"}},
		"flags at the end": {[]string{"pods", "--label", "app"}, []string{"flags go first"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), test.args, strings.NewReader(""), &out, &out)
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
	if err := run(t.Context(), []string{"--help"}, strings.NewReader(""), &out, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Usage:", "Examples:", "appstatus --crds", "remove KIND", "-label label"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help does not have %q:\n%s", want, out.String())
		}
	}
}
