package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/evenkeeltest/controlplane"
	v1 "github.com/even-keel/evenkeel/examples/cloudmanager/api/v1"
	"github.com/even-keel/evenkeel/examples/internal/program"
)

var definitions = client.Kind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})

// TestOneCommandIsEnough: the program installs what it needs, and brings up the
// example.
func TestOneCommandIsEnough(t *testing.T) {
	env := evenkeeltest.Start(t)
	kubeconfig := env.Kubeconfig()
	p := program.Run(t, func(ctx context.Context, p *program.Program) error {
		return run(ctx, []string{"--kubeconfig", kubeconfig, "--install"}, &p.Err)
	})
	evenkeeltest.Eventually(env, client.Key{Name: "cloudmanagers.cloudmanagercontroller.huayun.com"},
		func(*unstructured.Unstructured) error { return nil }, definitions)
	env.ApplyFiles("manifests/example.yaml") // as soon as it is served
	p.Err.Expect(t, "msg=Created controller=cloudmanager key=default/cloud")
	evenkeeltest.Eventually(env, client.Key{Namespace: "default", Name: "cloud"}, phase(v1.StartingDB))
}

// Nobody plays anything here: the pods of all three parts run on simulated nodes.
func TestAnApplicationComesToRun(t *testing.T) {
	env := evenkeeltest.Start(t, evenkeeltest.CRDs("manifests/crd.yaml"))
	controlplane.Run(env, controlplane.Options{Nodes: 2})
	kubeconfig := env.Kubeconfig()
	program.Run(t, func(ctx context.Context, p *program.Program) error {
		return run(ctx, []string{"--kubeconfig", kubeconfig}, &p.Err)
	})
	env.ApplyFiles("manifests/example.yaml")
	evenkeeltest.Eventually(env, client.Key{Namespace: "default", Name: "cloud"}, phase(v1.Running))
}

func phase(want v1.Phase) func(*v1.CloudManager) error {
	return func(cm *v1.CloudManager) error {
		if cm.Status.Phase != want {
			return errors.New("it is " + string(cm.Status.Phase))
		}
		return nil
	}
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
		"an argument":      {[]string{"quickly"}, []string{"quickly", "--help"}},
		"a bad lease":      {[]string{"--leader", "lease"}, []string{"namespace/name"}},
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
	for _, want := range []string{"Usage:", "Examples:", "cloudmanager --install", "-kubeconfig file"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help does not have %q:\n%s", want, out.String())
		}
	}
}
