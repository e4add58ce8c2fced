package operator_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	v1 "github.com/even-keel/evenkeel/examples/cloudmanager/api/v1"
)

// badSpec is a specification that cannot be followed.
type badSpec struct {
	change func(*v1.CloudManager)
	// refusal is what the schema says of it, told what the operator does.
	refusal, told string
}

var badSpecs = map[string]badSpec{
	"no front": {func(cm *v1.CloudManager) { cm.Spec.Front = v1.Part{} },
		"spec.front.name", "[spec.front.image: Required value, spec.front.name: Required value]"},
	"no image": {func(cm *v1.CloudManager) { cm.Spec.Identity.Image = "" },
		"spec.identity.image", "spec.identity.image: Required value"},
	"no name": {func(cm *v1.CloudManager) { cm.Spec.DB.Name = "" },
		"spec.db.name", "spec.db.name: Required value"},
	"a name that is none": {func(cm *v1.CloudManager) { cm.Spec.DB.Name = "My_SQL" },
		"spec.db.name", `spec.db.name: Invalid value: "My_SQL": a lowercase RFC 1123 label must`},
	"a name that is too long": {func(cm *v1.CloudManager) { cm.Spec.Front.Name = strings.Repeat("a", 51) },
		"spec.front.name", "spec.front.name: Too long: may not be more than 50"},
	"an application whose name is too long": {func(cm *v1.CloudManager) { cm.Name = strings.Repeat("a", 64) },
		"may have 63 characters", "metadata.name: Too long: may not be more than 63"},
	"names that collide": {func(cm *v1.CloudManager) { cm.Spec.Front.Name = "identity" },
		"front, identity and db must have different names", `spec.identity.name: Duplicate value: "identity"`},
	"no replicas": {func(cm *v1.CloudManager) { cm.Spec.Front.Replicas = new(int32(0)) },
		"spec.front.replicas", "spec.front.replicas: Invalid value: 0: must be at least 1"},
	"no password": {func(cm *v1.CloudManager) { cm.Spec.DB.RootPass = "" },
		"spec.db.rootPass", "spec.db.rootPass: Required value"},
	"a size that is none": {func(cm *v1.CloudManager) { cm.Spec.DB.Storage.Size = "lots" },
		"spec.db.storage.size", `spec.db.storage.size: Invalid value: "lots": must be a quantity above 0, such as 10Gi`},
	"a size below nothing": {func(cm *v1.CloudManager) { cm.Spec.DB.Storage.Size = "-1Gi" },
		"spec.db.storage.size", `spec.db.storage.size: Invalid value: "-1Gi"`},
	"an access mode that is none": {func(cm *v1.CloudManager) { cm.Spec.DB.Storage.AccessModes = []string{"ReadAlways"} },
		"spec.db.storage.accessModes[0]", `spec.db.storage.accessModes[0]: Unsupported value: "ReadAlways"`},
	"no access mode": {func(cm *v1.CloudManager) { cm.Spec.DB.Storage.AccessModes = nil },
		"spec.db.storage.accessModes", "spec.db.storage.accessModes: Required value"},
	"access modes that do not go together": {func(cm *v1.CloudManager) {
		cm.Spec.DB.Storage.AccessModes = []string{"ReadWriteOncePod", "ReadOnlyMany"}
	}, "ReadWriteOncePod goes with no other mode", "ReadWriteOncePod goes with no other mode"},
}

// refusedBySchema: none of them is stored.
func refusedBySchema(t *testing.T, s *server) {
	all := managers(s).In("default")
	for name, bad := range badSpecs {
		t.Run(name, func(t *testing.T) {
			cm := application()
			bad.change(cm)
			if _, err := all.Create(t.Context(), cm); !client.IsInvalid(err) || !strings.Contains(err.Error(), bad.refusal) {
				t.Errorf("the server does not refuse it by %q: %v", bad.refusal, err)
			}
		})
	}
	t.Run("storage that cannot be changed", func(t *testing.T) {
		w := s.world(t)
		w.create()
		patch := client.MergePatch(`{"spec": {"db": {"storage": {"size": "2Gi"}}}}`)
		_, err := managers(s).In(w.ns).Patch(t.Context(), client.Key{Name: "cloud"}, patch)
		if want := "the storage of volumes that exist cannot be changed"; !client.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("the server does not refuse it by %q: %v", want, err)
		}
	})
}

// toldOf: each ends in a condition and an event, and in nothing else. What is mended
// works.
func toldOf(w *world, bad badSpec) {
	w.start()
	cm := w.create(bad.change)
	got := w.phaseOf(cm.Name, v1.Failed).Status.Conditions
	if len(got) != 1 || got[0].Type != v1.Ready || got[0].Status != metav1.ConditionFalse || got[0].Reason != "InvalidSpec" || !strings.Contains(got[0].Message, bad.told) {
		w.Errorf("not False, InvalidSpec, %q: %+v", bad.told, got)
	}
	w.event(cm.Name, "Warning", "InvalidSpec", bad.told)
	w.has()
	w.quiet(map[string]uint64{}, 3)

	if len(cm.Name) > 63 {
		return // a name cannot be mended
	}
	mended := w.phase(v1.Failed)
	mended.Spec = application().Spec
	must(managers(w.server).Update(w.Context(), mended))(w)
	w.phase(v1.StartingDB)
	w.has("Secret/db-auth", "StatefulSet/db")
}

// refusedByServer: the operator finds nothing wrong, but the server does.
func refusedByServer(w *world) {
	w.start()
	w.running()
	w.settled()
	w.change(`{"db": {"storage": {"size": "2Gi"}}}`)
	w.phase(v1.Failed)
	w.condition(v1.Ready, metav1.ConditionFalse, "Refused", "StatefulSet")
	w.event("cloud", "Warning", "Refused", "StatefulSet/db")
	w.has("Deployment/front", "Deployment/identity", "Secret/db-auth", "StatefulSet/db")
	w.quiet(map[string]uint64{"terminal_error": 2}, 20)
	w.change(`{"db": {"storage": {"size": "1Gi"}}}`)
	w.phase(v1.Running)
	w.settled()
}

// quiet checks that failures were at most so many, and that it took few reconciles.
func (w *world) quiet(failures map[string]uint64, most uint64) {
	w.Helper()
	st := w.op.Status()
	for _, result := range []string{"error", "terminal_error", "requeue", "requeue_after"} {
		if st.Results[result] > failures[result] {
			w.Errorf("%d ended with %s: %+v", st.Results[result], result, w.op.Recent())
		}
	}
	if st.Took.Count > most {
		w.Errorf("it took %d reconciles: %+v", st.Took.Count, w.op.Recent())
	}
}
