package revision_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/revision"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

func template(image string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}

// keeper records templates of one object.
type keeper struct {
	t         *testing.T
	revisions *client.Client[*appsv1.ControllerRevision]
	subject   revision.Subject
}

func newKeeper(t *testing.T) *keeper {
	env := evenkeeltest.Start(t)
	owner, err := client.Of[*corev1.ConfigMap](env.Conn()).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	if err != nil {
		t.Fatal(err)
	}
	return &keeper{t, client.Of[*appsv1.ControllerRevision](env.Conn()), revision.Subject{
		Owner: owner, Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), HashLabel: "hash",
	}}
}

func (k *keeper) record(h revision.History, image string) revision.History {
	k.t.Helper()
	k.subject.Template = template(image)
	h, err := revision.Record(k.t.Context(), k.revisions, h, &k.subject)
	if err != nil {
		k.t.Fatal(err)
	}
	return h
}

// numbers are those of a history, with the images.
func numbers(t *testing.T, h revision.History) string {
	t.Helper()
	var out []string
	for _, r := range h {
		kept, err := revision.Template(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(r.Revision, " ", kept.Spec.Containers[0].Image))
	}
	return strings.Join(out, ", ")
}

func TestATemplateIsRecordedOnceAndNumberedAnewWhenItComesBack(t *testing.T) {
	k := newKeeper(t)
	h := k.record(nil, "one")
	h = k.record(h, "one")
	h = k.record(h, "two")
	if got := numbers(t, h); got != "1 one, 2 two" {
		t.Fatalf("the history is %s", got)
	}
	first := h[0].Name
	h = k.record(h, "one")
	if got := numbers(t, h); got != "2 two, 3 one" || h[1].Name != first {
		t.Errorf("the history is %s, and the last %s, not %s", got, h[1].Name, first)
	}
	var stored []*appsv1.ControllerRevision
	for r, err := range k.revisions.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, r)
	}
	if got := numbers(t, revision.Sorted(stored)); got != "2 two, 3 one" {
		t.Errorf("what is stored is %s", got)
	}
}

func TestARevisionThatIsThereButNotSeenIsFound(t *testing.T) {
	k := newKeeper(t)
	h := k.record(nil, "one")
	again := k.record(nil, "one")
	if again[0].UID != h[0].UID || k.subject.Collisions != 0 {
		t.Errorf("%s is not %s; %d collisions", again[0].Name, h[0].Name, k.subject.Collisions)
	}
}

func TestANameThatIsTakenIsNotUsed(t *testing.T) {
	k := newKeeper(t)
	h := k.record(nil, "one")
	other := h[0].DeepCopy()
	if err := k.revisions.Delete(t.Context(), client.KeyOf(h[0])); err != nil {
		t.Fatal(err)
	}
	other.ResourceVersion, other.UID, other.OwnerReferences = "", "", nil
	other.Data = runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}
	if _, err := k.revisions.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	h = k.record(nil, "one")
	if h[0].Name == other.Name || k.subject.Collisions != 1 || h[0].Labels["hash"] == other.Labels["hash"] {
		t.Errorf("it is called %s, after %d collisions", h[0].Name, k.subject.Collisions)
	}
}

func TestARevisionHasAllThatKubectlShows(t *testing.T) {
	k := newKeeper(t)
	k.subject.Owner.SetAnnotations(map[string]string{"kubernetes.io/change-cause": "because"})
	r := k.record(nil, "one")[0]
	if r.Annotations["kubernetes.io/change-cause"] != "because" || r.Labels["app"] != "web" || !metav1.IsControlledBy(r, k.subject.Owner) ||
		r.Name != "web-"+r.Labels["hash"] {
		t.Errorf("%s has annotations %v, labels %v, owners %v", r.Name, r.Annotations, r.Labels, r.OwnerReferences)
	}
	if kept, err := revision.Template(r); err != nil || !equality.Semantic.DeepEqual(kept, template("one")) {
		t.Errorf("it keeps %+v (%v)", kept, err)
	}
	if _, err := revision.Template(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{`)}}); err == nil {
		t.Error("half an object is a template")
	}
}

func TestOldRevisionsThatNobodyUsesAreSurplus(t *testing.T) {
	var h revision.History
	for i := range 5 {
		h = append(h, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", i)}, Revision: int64(i)})
	}
	alive := func(r *appsv1.ControllerRevision) bool { return r.Name == "r0" || r.Name == "r4" }
	limit := func(n int32) *int32 { return &n }
	for name, c := range map[string]struct {
		limit *int32
		want  string
	}{
		"none is kept": {limit(0), "r1 r2 r3"}, "one is": {limit(1), "r1 r2"}, "all are": {limit(3), ""}, "more could be": {nil, ""}, "no limit": {limit(-1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range h.Surplus(c.limit, alive) {
				got = append(got, r.Name)
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("%q, not %q", s, c.want)
			}
		})
	}
}

func TestTrimmingIsDoneWhenItIsDone(t *testing.T) {
	k := newKeeper(t)
	h := k.record(k.record(nil, "one"), "two")
	for range 2 { // the second time, there is none
		if err := revision.Trim(t.Context(), k.revisions, h[:1]); err != nil {
			t.Error(err)
		}
	}
	if _, err := k.revisions.Get(t.Context(), client.KeyOf(h[1])); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := revision.Trim(ctx, k.revisions, h[1:]); !errors.Is(err, context.Canceled) {
		t.Errorf("a failure is %v", err)
	}
}

func ExampleData() {
	data, err := revision.Data(&corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "one"}}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(data))
	// Output:
	// {"spec":{"template":{"$patch":"replace","metadata":{},"spec":{"containers":[{"image":"one","name":"c","resources":{}}]}}}}
}
