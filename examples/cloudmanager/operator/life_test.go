package operator_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	v1 "github.com/even-keel/evenkeel/examples/cloudmanager/api/v1"
)

func inOrder(w *world) {
	w.start()
	cm := w.create()
	w.phase(v1.StartingDB)
	w.condition(v1.Ready, metav1.ConditionFalse, "Starting", "db: 0 of 3 replicas are ready")
	w.condition(v1.IdentityReady, metav1.ConditionFalse, "Waiting", "")
	w.has("Secret/db-auth", "StatefulSet/db")

	w.ready("StatefulSet/db", 1) // which is not more than half
	w.condition(v1.DBReady, metav1.ConditionFalse, "Starting", "1 of 3 replicas are ready")
	w.has("Secret/db-auth", "StatefulSet/db")
	w.ready("StatefulSet/db", 2)
	w.phase(v1.StartingIdentity)
	w.condition(v1.DBReady, metav1.ConditionTrue, "Ready", "2 of 3 replicas are ready")
	w.has("Deployment/identity", "Secret/db-auth", "StatefulSet/db")

	w.ready("Deployment/identity", 1) // half is not most
	w.condition(v1.IdentityReady, metav1.ConditionFalse, "Starting", "1 of 2 replicas are ready")
	w.has("Deployment/identity", "Secret/db-auth", "StatefulSet/db")
	w.ready("Deployment/identity", 2)
	w.phase(v1.StartingFront)
	w.has("Deployment/front", "Deployment/identity", "Secret/db-auth", "StatefulSet/db")

	w.ready("Deployment/front", 1)
	w.phase(v1.Running)
	w.condition(v1.Ready, metav1.ConditionTrue, "Ready", "all parts are ready")
	w.settled()
	for _, name := range []string{"Secret/db-auth", "StatefulSet/db", "Deployment/identity", "Deployment/front"} {
		w.event("cloud", "Normal", "Created", name)
	}
	w.event("cloud", "Normal", "Running", "")
	w.isAsSpecified(cm)
}

// isAsSpecified checks the objects of the application.
func (w *world) isAsSpecified(cm *v1.CloudManager) {
	w.Helper()
	secret := must(secrets(w.server).In(w.ns).Get(w.Context(), client.Key{Name: "db-auth"}))(w)
	db := must(statefulSets(w.server).In(w.ns).Get(w.Context(), client.Key{Name: "db"}))(w)
	front := must(deployments(w.server).In(w.ns).Get(w.Context(), client.Key{Name: "front"}))(w)
	identity := must(deployments(w.server).In(w.ns).Get(w.Context(), client.Key{Name: "identity"}))(w)
	for _, obj := range []client.Object{secret, db, front, identity} {
		if !metav1.IsControlledBy(obj, cm) {
			w.Errorf("%s is not controlled by the application: %v", obj.GetName(), obj.GetOwnerReferences())
		}
	}
	main := db.Spec.Template.Spec.Containers[0]
	ref := main.Env[0].ValueFrom.SecretKeyRef
	if got := string(secret.Data[ref.Key]); ref.Name != secret.Name || got != "secret" {
		w.Errorf("the database's password is %q of %v", got, ref)
	}
	claim := db.Spec.VolumeClaimTemplates[0]
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.String() != "1Gi" || *claim.Spec.StorageClassName != "fast" || !slices.Equal(claim.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}) {
		w.Errorf("the database's volume is %+v", claim.Spec)
	}
	if main.VolumeMounts[0].Name != claim.Name || main.Image != "mysql:8.4" || *db.Spec.Replicas != 3 {
		w.Errorf("the database is %+v", db.Spec)
	}
	if image := front.Spec.Template.Spec.Containers[0].Image; image != "nginx:1" || *front.Spec.Replicas != 1 {
		w.Errorf("%d of %s are to be the front", *front.Spec.Replicas, image)
	}
}

func degraded(w *world) {
	w.start()
	w.running()
	w.ready("StatefulSet/db", 1)
	w.phase(v1.StartingDB)
	w.condition(v1.FrontReady, metav1.ConditionTrue, "Ready", "1 of 1 replicas are ready")
	w.has("Deployment/front", "Deployment/identity", "Secret/db-auth", "StatefulSet/db")
	w.ready("StatefulSet/db", 2)
	w.phase(v1.Running)
}

func followed(w *world) {
	w.start()
	w.running()
	w.change(`{"front": {"image": "nginx:2", "replicas": 3}}`)
	await(w, deployments(w.server), "front", runs("nginx:2", 3))
	w.phase(v1.StartingFront)
	w.ready("Deployment/front", 3)
	w.phase(v1.Running)
	w.event("cloud", "Normal", "Updated", "Deployment/front")

	before := must(statefulSets(w.server).In(w.ns).Get(w.Context(), client.Key{Name: "db"}))(w)
	w.change(`{"db": {"rootPass": "better"}, "identity": {"image": "keystone:2"}}`)
	await(w, secrets(w.server), "db-auth", func(s *corev1.Secret) error {
		if got := string(s.Data["root-password"]); got != "better" {
			return fmt.Errorf("the password is %s", got)
		}
		return nil
	})
	await(w, statefulSets(w.server), "db", func(db *appsv1.StatefulSet) error { // which makes new pods
		if db.Generation == before.Generation || fmt.Sprint(db.Spec.Template.Annotations) == fmt.Sprint(before.Spec.Template.Annotations) {
			return fmt.Errorf("the pods keep the old password: %v", db.Spec.Template.Annotations)
		}
		return nil
	})
	w.phase(v1.StartingDB)
	w.settled()
	if err := runs("keystone:1", 2)(must(deployments(w.server).In(w.ns).Get(w.Context(), client.Key{Name: "identity"}))(w)); err != nil {
		w.Errorf("identity is changed before the database is ready: %v", err)
	}
	w.ready("StatefulSet/db", 3)
	await(w, deployments(w.server), "identity", runs("keystone:2", 2))
	w.ready("Deployment/identity", 2)
	w.phase(v1.Running)
	w.settled()
}

func runs(image string, replicas int32) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		if got := d.Spec.Template.Spec.Containers[0].Image; got != image || *d.Spec.Replicas != replicas {
			return fmt.Errorf("it is to run %d of %s", *d.Spec.Replicas, got)
		}
		return nil
	}
}

func defended(w *world) {
	w.start()
	w.running()
	front := client.Key{Namespace: w.ns, Name: "front"}
	forged := client.StrategicPatch(`{"metadata": {"annotations": {"note": "mine"}},
		"spec": {"replicas": 7, "template": {"spec": {"containers": [{"name": "front", "image": "forged"}]}}}}`)
	must(deployments(w.server).Patch(w.Context(), front, forged))(w)
	d := await(w, deployments(w.server), "front", runs("nginx:1", 1))
	if d.Annotations["note"] != "mine" {
		w.Errorf("what the operator has no opinion on is not others' to set: %v", d.Annotations)
	}
	if err := deployments(w.server).Delete(w.Context(), front); err != nil {
		w.Fatal(err)
	}
	await(w, deployments(w.server), "front", func(now *appsv1.Deployment) error {
		if now.UID == d.UID {
			return fmt.Errorf("it is the old one")
		}
		return nil
	})
	w.phase(v1.StartingFront)
	w.settled()
}

func renamed(w *world) {
	w.start()
	w.running()
	w.change(`{"front": {"name": "web"}, "identity": {"name": "keystone"}, "db": {"name": "mysql", "storage": {"size": "2Gi"}}}`)
	w.phase(v1.StartingDB)
	awaitGone(w, deployments(w.server), "front")
	awaitGone(w, deployments(w.server), "identity")
	awaitGone(w, statefulSets(w.server), "db")
	awaitGone(w, secrets(w.server), "db-auth")
	w.has("Secret/mysql-auth", "StatefulSet/mysql")
	for _, name := range []string{"Deployment/front", "Deployment/identity", "StatefulSet/db", "Secret/db-auth"} {
		w.event("cloud", "Normal", "Deleted", name)
	}
	w.ready("StatefulSet/mysql", 3)
	w.phase(v1.StartingIdentity)
	w.ready("Deployment/keystone", 2)
	w.phase(v1.StartingFront)
	w.ready("Deployment/web", 1)
	w.phase(v1.Running)
	w.has("Deployment/keystone", "Deployment/web", "Secret/mysql-auth", "StatefulSet/mysql")
}

// swapped: an object cannot become another part, and so is made anew.
func swapped(w *world) {
	w.start()
	w.running()
	w.change(`{"front": {"name": "identity"}, "identity": {"name": "front"}}`)
	await(w, deployments(w.server), "front", runs("keystone:1", 2))
	w.event("cloud", "Normal", "Deleted", "Deployment/front: it was another part")
	w.ready("Deployment/front", 2)
	await(w, deployments(w.server), "identity", runs("nginx:1", 1))
	w.ready("Deployment/identity", 1)
	w.phase(v1.Running)
	w.has("Deployment/front", "Deployment/identity", "Secret/db-auth", "StatefulSet/db")
}

func restarted(w *world) {
	stop := w.start()
	w.create()
	w.phase(v1.StartingDB)
	stop()
	w.ready("StatefulSet/db", 3)
	w.change(`{"identity": {"image": "keystone:2"}}`)
	w.start()
	w.phase(v1.StartingIdentity)
	await(w, deployments(w.server), "identity", runs("keystone:2", 2))
	w.has("Deployment/identity", "Secret/db-auth", "StatefulSet/db")
	w.ready("Deployment/identity", 2)
	w.phase(v1.StartingFront)
	w.ready("Deployment/front", 1)
	w.phase(v1.Running)
	w.settled()
}

func deleted(w *world) {
	w.start()
	cm := w.create(func(cm *v1.CloudManager) { cm.Finalizers = []string{"example.com/wait"} })
	w.phase(v1.StartingDB)
	if err := managers(w.server).Delete(w.Context(), client.KeyOf(cm)); err != nil {
		w.Fatal(err)
	}
	w.ready("StatefulSet/db", 3)
	w.has("Secret/db-auth", "StatefulSet/db")
	must(managers(w.server).Patch(w.Context(), client.KeyOf(cm), client.MergePatch(`{"metadata": {"finalizers": null}}`)))(w)
	awaitGone(w, managers(w.server), "cloud")
	w.has("Secret/db-auth", "StatefulSet/db")
}

// printed reads the table that kubectl shows.
func printed(w *world) {
	w.start()
	w.create()
	w.phase(v1.StartingDB)
	table := metav1.Table{}
	if err := json.Unmarshal(w.get("/apis/"+v1.GroupVersion.String()+"/namespaces/"+w.ns+"/cloudmanagers"), &table); err != nil {
		w.Fatal(err)
	}
	if len(table.ColumnDefinitions) < 2 || table.ColumnDefinitions[1].Name != "Status" {
		w.Fatalf("the columns are %+v", table.ColumnDefinitions)
	}
	if got := table.Rows[0].Cells[1]; got != string(v1.StartingDB) {
		w.Errorf("the table shows %v", got)
	}
}

// get reads a path as a table.
func (w *world) get(path string) []byte {
	w.Helper()
	transport := must(rest.TransportFor(w.cfg))(w)
	request := must(http.NewRequestWithContext(w.Context(), http.MethodGet, w.cfg.Host+path, nil))(w)
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer := must(transport.RoundTrip(request))(w)
	defer func() { _ = answer.Body.Close() }()
	return must(io.ReadAll(answer.Body))(w)
}
