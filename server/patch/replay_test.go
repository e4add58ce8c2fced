package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// recordedStep is a request to the real server and its answer.
type recordedStep struct {
	Scenario string
	Step     int
	Request  struct {
		Method, Path string
		Headers      map[string]string
		Body         json.RawMessage
		Select       []string
	}
	Response struct {
		Status int
		Body   map[string]any
	}
}

// notPure are the recorded steps that this package has no part in.
var notPure = map[string]string{
	"apply-conflict 7": "the resource version is storage's",
	"patch-merge 3":    "the resource version is storage's",
	"patch-merge 5":    "the name is checked by the server",
	"patch-merge 7":    "there is no object",
}

func TestPatchesAnswerAsRecorded(t *testing.T) {
	types := NewTypes(nil)
	objects := map[string]runtime.Object{}
	done := 0
	for _, step := range readLines[recordedStep](t, "testdata/patches.jsonl") {
		name := fmt.Sprintf("%s %d", step.Scenario, step.Step)
		if step.Request.Method == "GET" || notPure[name] != "" {
			continue
		}
		done++
		t.Run(name, func(t *testing.T) { replay(t, types, objects, step) })
	}
	if done < 30 {
		t.Errorf("only %d steps replayed", done)
	}
}

func replay(t *testing.T, types *Types, objects map[string]runtime.Object, step recordedStep) {
	where, err := url.Parse(step.Request.Path)
	if err != nil {
		t.Fatal(err)
	}
	key := step.Scenario + where.Path
	manager := ManagerName(where.Query().Get("fieldManager"), "wire/1")
	var obj runtime.Object
	if step.Request.Method == "POST" {
		body := strings.ReplaceAll(string(step.Request.Body), "${ns}", step.Scenario+"-id")
		obj = decodeTyped(t, []byte(body))
		defaults(obj)
		accessor, _ := meta.Accessor(obj)
		key += "/" + accessor.GetName()
		_, err = fieldsOf(types, obj.GetObjectKind().GroupVersionKind()).Update(nil, obj, manager)
	} else {
		obj, err = patched(types, objects[key], step, where, manager)
	}
	if err != nil {
		checkStatus(t, err, step.Response.Body)
		return
	}
	if step.Response.Status >= 300 {
		t.Fatalf("accepted, want %d", step.Response.Status)
	}
	accessor, _ := meta.Accessor(obj)
	accessor.SetUID("u")
	checkObject(t, obj, step)
	objects[key] = obj
}

func fieldsOf(types *Types, gvk schema.GroupVersionKind) *Fields {
	return NewFields(types, scheme.Scheme, Endpoint{Kind: gvk, Reset: slices.Concat(setLater[gvk.Kind], []string{"status"}), Default: defaults})
}

// patched does what a server does with the request.
func patched(all *Types, live runtime.Object, step recordedStep, where *url.URL, manager string) (runtime.Object, error) {
	kind := types.PatchType(step.Request.Headers["Content-Type"])
	options := metav1.PatchOptions{FieldManager: where.Query().Get("fieldManager")}
	force := where.Query().Get("force") == "true"
	if force {
		options.Force = &force
	}
	if errs := ValidatePatch(&options, kind); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", errs)
	}
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	if strings.Contains(where.Path, "/deployments/") {
		gvk = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	}
	body := []byte(step.Request.Body)
	var text string
	if json.Unmarshal(body, &text) == nil {
		body = []byte(text)
	}
	fields := fieldsOf(all, gvk)
	if kind == types.ApplyYAMLPatchType {
		return fields.Apply(live, body, manager, force)
	}
	doc, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	obj, _ := scheme.Scheme.New(gvk)
	switch kind {
	case types.JSONPatchType:
		doc, err = JSON(doc, body)
	case types.MergePatchType:
		doc, err = Merge(doc, body)
	case types.StrategicMergePatchType:
		doc, err = Strategic(doc, body, obj)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(doc, obj); err != nil {
		return nil, err
	}
	defaults(obj)
	return fields.Update(live, obj, manager)
}

func checkStatus(t *testing.T, err error, recorded map[string]any) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("no Status: %v", err)
	}
	got := status.Status()
	got.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if diff := cmp.Diff(recorded, asMap(t, got)); diff != "" {
		t.Errorf("-recorded +ours\n%s", diff)
	}
}

// checkObject compares an object, but for what else a server fills in.
func checkObject(t *testing.T, obj runtime.Object, step recordedStep) {
	t.Helper()
	got, want := asMap(t, obj), step.Response.Body
	if step.Request.Select != nil {
		got = selected(got, step.Request.Select)
	}
	for _, m := range []map[string]any{got, want} {
		delete(m, "status")
		if metadata, ok := m["metadata"].(map[string]any); ok {
			for _, system := range []string{"creationTimestamp", "generation", "namespace", "resourceVersion", "uid"} {
				delete(metadata, system)
			}
			normalize(metadata["managedFields"])
		}
		normalize(m["metadata.managedFields"])
	}
	if gotKind := got["kind"]; gotKind == "Namespace" {
		delete(want, "spec") // set later
		delete(got, "spec")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-recorded +ours\n%s", diff)
	}
}

func selected(m map[string]any, paths []string) map[string]any {
	out := map[string]any{}
	for _, path := range paths {
		var v any = m
		for part := range strings.SplitSeq(path, ".") {
			v = v.(map[string]any)[part]
		}
		out[path] = v
	}
	return out
}

// normalize sorts managed fields as the recording has them, and drops times.
func normalize(entries any) {
	list, _ := entries.([]any)
	for _, e := range list {
		delete(e.(map[string]any), "time")
	}
	slices.SortFunc(list, func(a, b any) int {
		key := func(e any) string {
			m := e.(map[string]any)
			return fmt.Sprint(m["manager"], " ", m["operation"], " ", m["subresource"], " ", m["apiVersion"])
		}
		return strings.Compare(key(a), key(b))
	})
}

// defaults fills in what the recorded kinds leave out, as the real server does.
func defaults(obj runtime.Object) {
	if ns, ok := obj.(*corev1.Namespace); ok {
		ns.Labels = map[string]string{corev1.LabelMetadataName: ns.Name}
	}
	d, ok := obj.(*appsv1.Deployment)
	if !ok {
		return
	}
	one, ten, deadline, grace, quarter := int32(1), int32(10), int32(600), int64(30), intstr.FromString("25%")
	orElse(&d.Spec.Replicas, &one)
	orElse(&d.Spec.RevisionHistoryLimit, &ten)
	orElse(&d.Spec.ProgressDeadlineSeconds, &deadline)
	if s := &d.Spec.Strategy; s.Type == "" || s.Type == appsv1.RollingUpdateDeploymentStrategyType {
		s.Type = appsv1.RollingUpdateDeploymentStrategyType
		orElse(&s.RollingUpdate, &appsv1.RollingUpdateDeployment{MaxSurge: &quarter, MaxUnavailable: &quarter})
	}
	pod := &d.Spec.Template.Spec
	pod.DNSPolicy, pod.RestartPolicy, pod.SchedulerName = corev1.DNSClusterFirst, corev1.RestartPolicyAlways, "default-scheduler"
	orElse(&pod.TerminationGracePeriodSeconds, &grace)
	orElse(&pod.SecurityContext, &corev1.PodSecurityContext{})
	for i := range pod.Containers {
		c := &pod.Containers[i]
		c.ImagePullPolicy, c.TerminationMessagePath, c.TerminationMessagePolicy = corev1.PullIfNotPresent, "/dev/termination-log", corev1.TerminationMessageReadFile
		for j := range c.Ports {
			if c.Ports[j].Protocol == "" {
				c.Ports[j].Protocol = corev1.ProtocolTCP
			}
		}
	}
}

func orElse[T any](p **T, v *T) {
	if *p == nil {
		*p = v
	}
}
