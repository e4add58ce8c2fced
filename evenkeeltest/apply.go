package evenkeeltest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	if err := e.applyTexts(e.t.Context(), manifests); err != nil {
		e.t.Fatal(err)
	}
}

// ApplyFiles is Apply for manifests in files, or in the .yaml, .yml and .json
// files of folders.
func (e *Env) ApplyFiles(paths ...string) {
	e.t.Helper()
	if err := e.applyFiles(e.t.Context(), paths); err != nil {
		e.t.Fatal(err)
	}
}

func (s *Server) applyTexts(ctx context.Context, manifests []string) error {
	var all []*unstructured.Unstructured
	for _, m := range manifests {
		objs, err := parse([]byte(m))
		if err != nil {
			return errorf("read a manifest: %w", err)
		}
		all = append(all, objs...)
	}
	return s.apply(ctx, all)
}

func (s *Server) applyFiles(ctx context.Context, paths []string) error {
	var all []*unstructured.Unstructured
	for _, path := range paths {
		objs, err := readFiles(path)
		if err != nil {
			return errorf("%w", err)
		}
		all = append(all, objs...)
	}
	return s.apply(ctx, all)
}

// apply returns when all that is defined is served.
func (s *Server) apply(ctx context.Context, objs []*unstructured.Unstructured) error {
	if len(objs) == 0 {
		return nil
	}
	conn, err := s.conn()
	if err != nil {
		return errorf("connect: %w", err)
	}
	definitions, others := split(objs)
	if err := applyEach(ctx, conn, definitions); err != nil {
		return err
	}
	if err := awaitDefinitions(ctx, conn); err != nil {
		return errorf("wait for what is defined: %w", err)
	}
	return applyEach(ctx, conn, others)
}

func applyEach(ctx context.Context, conn *client.Conn, objs []*unstructured.Unstructured) error {
	for _, obj := range objs {
		if err := applyOne(ctx, conn, obj); err != nil {
			return errorf("apply %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// split tells definitions of custom resources from other objects.
func split(objs []*unstructured.Unstructured) (definitions, others []*unstructured.Unstructured) {
	for _, obj := range objs {
		if obj.GroupVersionKind() == definitionKind {
			definitions = append(definitions, obj)
		} else {
			others = append(others, obj)
		}
	}
	return definitions, others
}

func applyOne(ctx context.Context, conn *client.Conn, obj *unstructured.Unstructured) error {
	objects := client.Of[*unstructured.Unstructured](conn, client.Kind(obj.GroupVersionKind()))
	resource, err := objects.Resource(ctx)
	if err != nil {
		return err
	}
	if resource.Namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	_, err = objects.Apply(ctx, obj, client.FieldManager(manager), client.Force())
	return err
}

// awaitDefinitions waits until all definitions are established.
func awaitDefinitions(ctx context.Context, conn *client.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, patience())
	defer cancel()
	established := Condition[*unstructured.Unstructured]("Established", metav1.ConditionTrue)
	return await(ctx, conn, func(all map[client.Key]*unstructured.Unstructured) error {
		for key, crd := range all {
			if err := established(crd); err != nil {
				return fmt.Errorf("%s: %w", key.Name, err)
			}
		}
		return nil
	}, []client.KindOption{client.Kind(definitionKind)})
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
