package daemonset

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/polymorphichelpers"

	"github.com/even-keel/evenkeel/client"
)

// What `kubectl rollout` does is kubectl's own code here.
func TestKubectlRollsOutAndBack(t *testing.T) {
	s := stage(t)
	s.node("n1", "", "")
	s.node("n2", "", "")
	s.Apply(agent)
	kube, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	s.eventually(kubectlIsContent)
	restart, err := polymorphichelpers.ObjectRestarterFn(s.eventually(func(*appsv1.DaemonSet) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.sets.Patch(t.Context(), key("agent"), client.StrategicPatch(restart)); err != nil {
		t.Fatal(err)
	}
	s.eventually(kubectlIsContent)
	s.undo(kube, 0, "rolled back")
	set := s.eventually(kubectlIsContent)
	if n := len(set.Spec.Template.Annotations); n > 0 {
		t.Errorf("the template still has %v", set.Spec.Template.Annotations)
	}
	s.undo(kube, 3, "skipped rollback") // which is the present one
	viewer, err := polymorphichelpers.HistoryViewerFor(kind.GroupKind(), kube)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := viewer.ViewHistory("default", "agent", 0); err != nil || !strings.Contains(text, "\n2 ") || !strings.Contains(text, "\n3 ") {
		t.Errorf("the history is %q (%v)", text, err)
	}
	if text, err := viewer.ViewHistory("default", "agent", 2); err != nil || !strings.Contains(text, "restartedAt") {
		t.Errorf("revision 2 is %q (%v)", text, err)
	}
}

// kubectlIsContent is `kubectl rollout status`.
func kubectlIsContent(set *appsv1.DaemonSet) error {
	viewer, err := polymorphichelpers.StatusViewerFor(kind.GroupKind())
	if err != nil {
		return err
	}
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return err
	}
	if text, done, err := viewer.Status(&unstructured.Unstructured{Object: obj}, 0); err != nil || !done {
		return fmt.Errorf("kubectl: %s (%w)", text, err)
	}
	return nil
}

// undo is `kubectl rollout undo`.
func (s *scene) undo(kube kubernetes.Interface, to int64, want string) {
	s.t.Helper()
	rollbacker, err := polymorphichelpers.RollbackerFor(kind.GroupKind(), kube)
	if err != nil {
		s.t.Fatal(err)
	}
	set := s.eventually(func(*appsv1.DaemonSet) error { return nil })
	if text, err := rollbacker.Rollback(set, nil, to, 0); err != nil || !strings.HasPrefix(text, want) {
		s.t.Fatalf("kubectl: %s (%v)", text, err)
	}
}
