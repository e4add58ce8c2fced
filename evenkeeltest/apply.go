package evenkeeltest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/even-keel/evenkeel/client"
)

// manager is who owns the fields that manifests set.
const manager = "evenkeeltest"

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Apply applies manifests given as YAML or JSON: definitions of custom resources
// first, and what they define as soon as it is served. Objects without a
// namespace that need one are in "default". It fails the test if it cannot.
func (e *Env) Apply(manifests ...string) {
	e.t.Helper()
	var all []*unstructured.Unstructured
	for _, m := range manifests {
		objs, err := parse([]byte(m))
		if err != nil {
			e.t.Fatalf("evenkeeltest: read a manifest: %v", err)
		}
		all = append(all, objs...)
	}
	e.applyAll(all)
}

// ApplyFiles is Apply for manifests in files, or in the .yaml, .yml and .json
// files of folders.
func (e *Env) ApplyFiles(paths ...string) {
	e.t.Helper()
	var all []*unstructured.Unstructured
	for _, path := range paths {
		objs, err := readFiles(path)
		if err != nil {
			e.t.Fatalf("evenkeeltest: %v", err)
		}
		all = append(all, objs...)
	}
	e.applyAll(all)
}

func (e *Env) applyAll(objs []*unstructured.Unstructured) {
	e.t.Helper()
	slices.SortStableFunc(objs, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	waited := false
	for _, obj := range objs {
		if rank(obj) > 0 && !waited {
			e.awaitDefinitions()
			waited = true
		}
		if err := e.applyOne(obj); err != nil {
			e.t.Fatalf("evenkeeltest: apply %s %s: %v", obj.GetKind(), obj.GetName(), err)
		}
	}
}

func rank(obj *unstructured.Unstructured) int {
	if obj.GroupVersionKind() == definitionKind {
		return 0
	}
	return 1
}

func (e *Env) applyOne(obj *unstructured.Unstructured) error {
	objects := client.Of[*unstructured.Unstructured](e.Conn(), client.Kind(obj.GroupVersionKind()))
	resource, err := objects.Resource(e.t.Context())
	if err != nil {
		return err
	}
	if resource.Namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	_, err = objects.Apply(e.t.Context(), obj, client.FieldManager(manager), client.Force())
	return err
}

// awaitDefinitions waits until all definitions are established.
func (e *Env) awaitDefinitions() {
	e.t.Helper()
	EventuallyAll(e, func(all []*unstructured.Unstructured) error {
		for _, crd := range all {
			if !established(crd) {
				return fmt.Errorf("%s is not established", crd.GetName())
			}
		}
		return nil
	}, client.Kind(definitionKind))
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Established" && m["status"] == "True"
	})
}

// parse reads documents of YAML or JSON. Lists are taken apart.
func parse(text []byte) ([]*unstructured.Unstructured, error) {
	docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var all []*unstructured.Unstructured
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := sigsyaml.YAMLToJSON(doc)
		if err != nil {
			return nil, err
		}
		if s := strings.TrimSpace(string(content)); s == "" || s == "null" {
			continue
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(content); err != nil {
			return nil, err
		}
		if !obj.IsList() {
			all = append(all, obj)
			continue
		}
		err = obj.EachListItem(func(item runtime.Object) error {
			all = append(all, item.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
}

// readFiles reads the manifests of a file or of a folder.
func readFiles(path string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Ext(file) {
		case ".yaml", ".yml", ".json":
		default:
			if file != path {
				return nil
			}
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		objs, err := parse(text)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		all = append(all, objs...)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("there is no manifest in %s", path)
	}
	return all, err
}
