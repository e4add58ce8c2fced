package operator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	v1 "github.com/even-keel/evenkeel/examples/cloudmanager/api/v1"
)

func cloud() *v1.CloudManager {
	return &v1.CloudManager{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cloud", UID: "u", Generation: 1},
		Spec: v1.CloudManagerSpec{
			DB: v1.Database{
				Part: v1.Part{Name: "db", Image: "mysql:8", Replicas: new(int32(3))}, RootPass: "secret",
				Storage: v1.Storage{AccessModes: []string{"ReadWriteOnce"}, Size: "1Gi"},
			},
			Identity: v1.Part{Name: "identity", Image: "keystone:1", Replicas: new(int32(2))},
			Front:    v1.Part{Name: "front", Image: "nginx:1"},
		},
	}
}

// scene is what was seen; its changes are made one after the other.
type scene []func(s seen)

func (changes scene) seen() seen {
	s := seen{cm: cloud(), objects: map[string]client.Object{}}
	for _, change := range changes {
		change(s)
	}
	return s
}

// stored puts in a part as the operator makes it, with so many ready replicas.
func stored(name string, ready int32) func(seen) {
	return func(s seen) {
		i := slices.IndexFunc(partsOf(s), func(p part) bool { return p.name == name })
		for _, obj := range partsOf(s)[i].objects {
			obj.SetGeneration(1)
			switch obj := obj.(type) {
			case *appsv1.StatefulSet:
				obj.Status.ReadyReplicas, obj.Status.ObservedGeneration = ready, 1
			case *appsv1.Deployment:
				obj.Status.ReadyReplicas, obj.Status.ObservedGeneration = ready, 1
			}
			s.objects[nameOf(obj)] = obj
		}
	}
}

// spec changes the specification.
func spec(change func(*v1.CloudManagerSpec)) func(seen) {
	return func(s seen) {
		s.cm.Generation++
		change(&s.cm.Spec)
	}
}

// object changes an object that is there.
func object[T client.Object](name string, change func(T)) func(seen) {
	return func(s seen) { change(s.objects[name].(T)) }
}

// running is an application that runs.
func running(then ...func(seen)) scene {
	return append(scene{stored("db", 3), stored("identity", 2), stored("front", 1)}, then...)
}

// said is what a plan says of the whole.
func (p plan) said() string {
	for _, c := range p.conditions {
		if c.kind == v1.Ready {
			return c.reason + ": " + c.message
		}
	}
	return "nothing"
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		given  scene
		phase  v1.Phase
		writes string
		says   string
	}{
		"nothing is there": {nil,
			v1.StartingDB, "Create Secret/db-auth, Create StatefulSet/db", "Starting: db: it is not there yet"},
		"the database starts": {scene{stored("db", 0)},
			v1.StartingDB, "", "Starting: db: 0 of 3 replicas are ready"},
		"less than half of it is ready": {scene{stored("db", 1)},
			v1.StartingDB, "", "Starting: db: 1 of 3 replicas are ready"},
		"most of it is ready": {scene{stored("db", 2)},
			v1.StartingIdentity, "Create Deployment/identity", "Starting: identity: it is not there yet"},
		"just half of identity is ready": {scene{stored("db", 3), stored("identity", 1)},
			v1.StartingIdentity, "", "Starting: identity: 1 of 2 replicas are ready"},
		"identity is ready": {scene{stored("db", 3), stored("identity", 2)},
			v1.StartingFront, "Create Deployment/front", "Starting: front: it is not there yet"},
		"front is not": {scene{stored("db", 3), stored("identity", 2), stored("front", 0)},
			v1.StartingFront, "", "Starting: front: 0 of 1 replicas are ready"},
		"all are": {running(),
			v1.Running, "", "Ready: all parts are ready"},

		"the Secret is gone": {running(func(s seen) { delete(s.objects, "Secret/db-auth") }),
			v1.StartingDB, "Create Secret/db-auth", "Starting: db: it is being changed"},
		"the password is another": {running(spec(func(s *v1.CloudManagerSpec) { s.DB.RootPass = "better" })),
			v1.StartingDB, "Update Secret/db-auth, Update StatefulSet/db", "Starting: db: it is being changed"},
		"an image is another": {running(spec(func(s *v1.CloudManagerSpec) { s.Front.Image = "nginx:2" })),
			v1.StartingFront, "Update Deployment/front", "Starting: front: it is being changed"},
		"there are to be more": {running(spec(func(s *v1.CloudManagerSpec) { s.Identity.Replicas = new(int32(4)) })),
			v1.StartingIdentity, "Update Deployment/identity", "Starting: identity: 2 of 4 replicas are ready"},
		"two parts change": {running(spec(func(s *v1.CloudManagerSpec) { s.DB.Image, s.Front.Image = "mysql:9", "nginx:2" })),
			v1.StartingDB, "Update StatefulSet/db", "Starting: db: it is being changed"},
		"a change is not observed yet": {running(object("StatefulSet/db", func(d *appsv1.StatefulSet) { d.Generation = 2 })),
			v1.StartingDB, "", "Starting: db: 3 of 3 replicas are ready, before the last change"},
		"nobody tells what is observed": {running(object("StatefulSet/db", func(d *appsv1.StatefulSet) { d.Status.ObservedGeneration = 0 })),
			v1.Running, "", "Ready: all parts are ready"},

		"front has another name": {running(spec(func(s *v1.CloudManagerSpec) { s.Front.Name = "web" })),
			v1.StartingFront, "Delete Deployment/front, Create Deployment/web", "Starting: front: it is not there yet"},
		"two swap their names": {running(spec(func(s *v1.CloudManagerSpec) { s.Front.Name, s.Identity.Name = "identity", "front" })),
			v1.StartingIdentity, "Delete Deployment/front", "Starting: identity: 1 of 2 replicas are ready"},
		"the database has another name": {running(spec(func(s *v1.CloudManagerSpec) { s.DB.Name = "mysql" })),
			v1.StartingDB, "Delete Secret/db-auth, Delete StatefulSet/db, Create Secret/mysql-auth, Create StatefulSet/mysql", "Starting: db: it is not there yet"},
		"what goes is not deleted again": {running(
			object("Deployment/front", func(d *appsv1.Deployment) { d.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0))) }),
			spec(func(s *v1.CloudManagerSpec) { s.Front.Name = "web" })),
			v1.StartingFront, "Create Deployment/web", "Starting: front: it is not there yet"},
		"what is being deleted is waited for": {running(object("Deployment/front", func(d *appsv1.Deployment) { d.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0))) })),
			v1.StartingFront, "", "Starting: front: Deployment/front is being deleted"},

		"a name is another's": {running(object("Deployment/front", func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "other" })),
			v1.Pending, "", "NotOwned: Deployment/front exists, and is not controlled by this CloudManager"},
		"a name is nobody's": {scene{stored("db", 3), object("Secret/db-auth", func(s *corev1.Secret) { s.OwnerReferences = nil })},
			v1.Pending, "", "NotOwned: Secret/db-auth exists, and is not controlled by this CloudManager"},
		"nothing goes while a name is another's": {running(
			object("Deployment/identity", func(d *appsv1.Deployment) { d.OwnerReferences = nil }),
			spec(func(s *v1.CloudManagerSpec) { s.Front.Name = "web" })),
			v1.Pending, "", "NotOwned: Deployment/identity exists, and is not controlled by this CloudManager"},
		"the specification is bad": {running(spec(func(s *v1.CloudManagerSpec) { s.DB.Storage.Size = "lots" })),
			v1.Failed, "", `InvalidSpec: spec.db.storage.size: Invalid value: "lots": must be a quantity above 0, such as 10Gi`},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(test.given.seen())
			var writes []string
			for _, w := range p.writes {
				writes = append(writes, w.String())
			}
			if got := strings.Join(writes, ", "); got != test.writes {
				t.Errorf("writes %q, not %q", got, test.writes)
			}
			if p.phase != test.phase || p.said() != test.says {
				t.Errorf("says %s, %q, not %s, %q", p.phase, p.said(), test.phase, test.says)
			}
		})
	}
}

func TestDecideChangesNothing(t *testing.T) {
	s := running(spec(func(s *v1.CloudManagerSpec) {
		s.DB.RootPass, s.DB.Image, s.Front.Name, s.Identity.Replicas = "better", "mysql:9", "web", new(int32(5))
	})).seen()
	before := describe(s)
	decide(s)
	if after := describe(s); after != before {
		t.Errorf("was\n%s\nand is\n%s", before, after)
	}
}

func describe(s seen) string {
	text := fmt.Sprintf("%+v", *s.cm)
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		text += fmt.Sprintf("\n%s %v", name, s.objects[name])
	}
	return text
}

func TestAllConditionsAreTold(t *testing.T) {
	var got []string
	for _, c := range decide(scene{stored("db", 2), stored("identity", 1)}.seen()).conditions {
		got = append(got, fmt.Sprintf("%s %s %s: %s", c.kind, c.status(), c.reason, c.message))
	}
	want := []string{
		"DBReady True Ready: 2 of 3 replicas are ready",
		"IdentityReady False Starting: 1 of 2 replicas are ready",
		"FrontReady False Waiting: it is not there yet",
		"Ready False Starting: identity: 1 of 2 replicas are ready",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestWhatOthersSetStays(t *testing.T) {
	s := running(
		object("Deployment/front", func(d *appsv1.Deployment) {
			d.Labels["team"] = "web"
			d.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "proxy", Image: "envoy"})
		}),
		spec(func(s *v1.CloudManagerSpec) { s.Front.Image = "nginx:2" }),
	).seen()
	now := decide(s).writes[0].obj.(*appsv1.Deployment)
	pod := now.Spec.Template.Spec
	if now.Labels["team"] != "web" || pod.DNSPolicy != corev1.DNSClusterFirst || len(pod.Containers) != 2 || pod.Containers[0].Image != "nginx:2" {
		t.Errorf("%+v", now)
	}
}
