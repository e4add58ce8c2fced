package operator_test

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	v1 "github.com/even-keel/evenkeel/examples/cloudmanager/api/v1"
)

// somebodys makes a Deployment that is nobody's part.
func (w *world) somebodys(name string) *appsv1.Deployment {
	w.Helper()
	labels := map[string]string{"app": name}
	return must(deployments(w.server).In(w.ns).Create(w.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "theirs"}}},
			},
		},
	}))(w)
}

// isStill checks that an object is as it was.
func (w *world) isStill(d *appsv1.Deployment) {
	w.Helper()
	if now := must(deployments(w.server).Get(w.Context(), client.KeyOf(d)))(w); now.ResourceVersion != d.ResourceVersion {
		w.Errorf("somebody's %s was changed: %+v", d.Name, now)
	}
}

func foreign(w *world) {
	theirs := w.somebodys("front")
	w.start() // after that, or it may hear of the application first
	w.create()
	w.phase(v1.Pending)
	w.condition(v1.Ready, metav1.ConditionFalse, "NotOwned", "Deployment/front exists, and is not controlled by this CloudManager")
	w.event("cloud", "Warning", "NotOwned", "Deployment/front")
	w.has("Deployment/front")
	w.isStill(theirs)

	if err := deployments(w.server).Delete(w.Context(), client.KeyOf(theirs)); err != nil {
		w.Fatal(err)
	}
	w.phase(v1.StartingDB) // as soon as the name is free
	w.has("Secret/db-auth", "StatefulSet/db")

	must(secrets(w.server).In(w.ns).Create(w.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mysql-auth"}}))(w)
	w.change(`{"db": {"name": "mysql"}}`)
	w.phase(v1.Pending)
	w.condition(v1.Ready, metav1.ConditionFalse, "NotOwned", "Secret/mysql-auth")
	w.has("Secret/db-auth", "Secret/mysql-auth", "StatefulSet/db") // what was running is not given up
	w.change(`{"db": {"name": "db"}}`)
	w.phase(v1.StartingDB)
}

func rivals(w *world) {
	w.start()
	first := w.create()
	w.phase(v1.StartingDB)
	w.create(func(cm *v1.CloudManager) { cm.Name = "rival" })
	w.phaseOf("rival", v1.Pending)
	w.event("rival", "Warning", "NotOwned", "Secret/db-auth")
	w.has("Secret/db-auth", "StatefulSet/db")
	db := must(statefulSets(w.server).In(w.ns).Get(w.Context(), client.Key{Name: "db"}))(w)
	if !metav1.IsControlledBy(db, first) {
		w.Errorf("the database has another owner: %v", db.OwnerReferences)
	}
	w.change(`{"db": {"name": "mysql"}}`) // and the first gives up its name
	w.phaseOf("rival", v1.StartingDB)
	w.phase(v1.StartingDB)
	w.has("Secret/db-auth", "Secret/mysql-auth", "StatefulSet/db", "StatefulSet/mysql")
}
