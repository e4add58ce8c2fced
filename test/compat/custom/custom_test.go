// Package custom has client-go's dynamic client and informers and
// controller-runtime's client work with custom resources of our server, while
// definitions change, webhooks convert and fail, and servers come and go.
package custom

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// TestMain fails if anything still runs when all clients and servers have
// stopped.
func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // what matters is asserted
	ctrl.SetLogger(logr.Discard())
	evenkeeltest.Main(m)
}

// patience is when a state that does not come is given up.
const patience = 30 * time.Second

const group = "compat.example.com"

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	v1          = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "hosts"}
	v2          = schema.GroupVersionResource{Group: group, Version: "v2", Resource: "hosts"}
)

const name = "hosts." + group

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func connect(t *testing.T, s *cluster.Server) dynamic.Interface {
	t.Helper()
	return must(dynamic.NewForConfig(s.Admin()))(t)
}

// object is short for an object in JSON.
type object = map[string]any

// fields is a schema of an object.
func fields(properties object) object { return object{"type": "object", "properties": properties} }

var text = object{"type": "string"}

// version is a version of a definition, with a status and a column.
func version(name string, stored bool, spec object) object {
	return object{
		"name": name, "served": true, "storage": stored,
		"subresources":             object{"status": object{}},
		"additionalPrinterColumns": []any{object{"name": "Host", "type": "string", "jsonPath": ".spec.host"}},
		"schema": object{"openAPIV3Schema": fields(object{
			"spec": fields(spec), "status": fields(object{"phase": text}),
		})},
	}
}

// hosts defines a kind whose first version has a host, and whose second takes it
// apart.
func hosts(versions ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": name},
		"spec": object{
			"group": group, "scope": "Namespaced", "versions": versions,
			"names": object{"plural": "hosts", "singular": "host", "kind": "Host", "listKind": "HostList"},
		},
	}}
}

func host(version, name string, spec object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": group + "/" + version, "kind": "Host",
		"metadata": object{"name": name, "namespace": "default"}, "spec": spec,
	}}
}

// define creates a definition and waits until it is served.
func define(t *testing.T, c dynamic.Interface, crd *unstructured.Unstructured) {
	t.Helper()
	must(c.Resource(definitions).Create(t.Context(), crd, metav1.CreateOptions{}))(t)
	eventually(t, "the definition is established", func(ctx context.Context) bool {
		seen, err := c.Resource(definitions).Get(ctx, crd.GetName(), metav1.GetOptions{})
		return err == nil && condition(seen, "Established") == "True"
	})
}

// redefine changes a definition. What follows sees it: the server answers once
// it serves what was asked for, or soon after.
func redefine(t *testing.T, c dynamic.Interface, change func(crd *unstructured.Unstructured)) {
	t.Helper()
	eventually(t, "the definition is changed", func(ctx context.Context) bool {
		crd, err := c.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		change(crd)
		_, err = c.Resource(definitions).Update(ctx, crd, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err == nil
	})
}

func condition(u *unstructured.Unstructured, kind string) string {
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range all {
		if c, ok := c.(object); ok && c["type"] == kind {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

func field(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

func eventually(t *testing.T, what string, is func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) { return is(ctx), nil })
	if err != nil {
		t.Fatalf("not so after %s: %s", patience, what)
	}
}
