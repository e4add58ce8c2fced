package deployment

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var ints, percent = intstr.FromInt32, intstr.FromString

func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		n                  int32
		surge, unavailable intstr.IntOrString
		want               bounds
	}{
		"numbers":                        {10, ints(3), ints(2), bounds{3, 2}},
		"surge is rounded up":            {10, percent("25%"), ints(0), bounds{3, 0}},
		"unavailable is rounded down":    {10, ints(1), percent("25%"), bounds{1, 2}},
		"of one":                         {1, percent("25%"), percent("25%"), bounds{1, 0}},
		"nothing would never end":        {2, percent("0%"), percent("1%"), bounds{0, 1}},
		"no more than all unavailable":   {2, ints(0), ints(5), bounds{0, 2}},
		"of none, none can be missing":   {0, ints(0), percent("50%"), bounds{0, 0}},
		"surge may be more than wanted":  {1, ints(5), ints(0), bounds{5, 0}},
		"more than all, as a percentage": {4, percent("150%"), percent("100%"), bounds{6, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := boundsOf(newModel(c.n, rolling(c.surge, c.unavailable)).deployment); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	if got := boundsOf(newModel(3, appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}).deployment); got != (bounds{}) {
		t.Errorf("Recreate has bounds %+v", got)
	}
}

func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func anyAmount(r *rand.Rand) intstr.IntOrString {
	if r.IntN(2) == 0 {
		return ints(int32(r.IntN(4)))
	}
	return percent(fmt.Sprintf("%d%%", r.IntN(101)))
}

// However pods become ready, and in whatever order controllers have their turn, a
// roll has enough pods and not too many, and comes to its end; also if another roll
// begins before.
func TestARollKeepsItsBoundsAndEnds(t *testing.T) {
	r := seeded(t)
	for range 30 {
		n := int32(1 + r.IntN(10))
		m := newModel(n, rolling(anyAmount(r), anyAmount(r)))
		m.deployment.Spec.ProgressDeadlineSeconds = new(int32(600))
		m.settle(t, r, func() {})
		b, image := boundsOf(m.deployment), 2
		m.image("web:2")
		m.settle(t, r, func() {
			if image < 5 && r.IntN(100) == 0 {
				m.image(fmt.Sprint("web:", image+1-2*r.IntN(2))) // another, or back
				image++
			}
			if all, ready := m.totals(); all > n+b.surge || ready < n-b.unavailable {
				t.Fatalf("of %d with %+v there are %d, and %d are ready", n, b, all, ready)
			}
		})
	}
}

func TestRecreateNeverMixesPods(t *testing.T) {
	r := seeded(t)
	for range 40 {
		m := newModel(int32(1+r.IntN(5)), appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType})
		m.settle(t, r, func() {})
		m.image("web:2")
		m.settle(t, r, func() {
			var users int
			for _, set := range m.sets {
				if len(m.pods[set.UID])+int(m.terminating[set.UID]) > 0 {
					users++
				}
			}
			if users > 1 {
				t.Fatalf("pods of %d templates run at once", users)
			}
		})
	}
}

// Sizes that change in the middle of rolls, and pauses, leave nothing undone.
func TestAnythingComesToItsEnd(t *testing.T) {
	r := seeded(t)
	for range 30 {
		m := newModel(int32(r.IntN(10)), rolling(anyAmount(r), anyAmount(r)))
		m.deployment.Spec.ProgressDeadlineSeconds = new(int32(600))
		limit := int32(r.IntN(3))
		m.deployment.Spec.RevisionHistoryLimit = &limit
		for range r.IntN(100) {
			m.step(t, r)
			switch r.IntN(20) {
			case 0:
				m.image(fmt.Sprint("web:", r.IntN(4)))
			case 1:
				m.deployment.Spec.Replicas = new(int32(r.IntN(10)))
				m.deployment.Generation++
			case 2:
				m.deployment.Spec.Paused = !m.deployment.Spec.Paused
			}
		}
		m.deployment.Spec.Paused = false
		m.settle(t, r, func() {})
		for range 20 {
			for i := range m.sets {
				m.reconcile(i)
			}
			m.decide(t)
		}
		if old := len(m.split().old); old > int(limit) {
			t.Fatalf("%d old ReplicaSets are left, and %d may be", old, limit)
		}
		if p := m.split().new; fmt.Sprint(revisionOf(p.set)) != m.revision() {
			t.Fatalf("the Deployment notes revision %s, its ReplicaSet %d", m.revision(), revisionOf(p.set))
		}
	}
}

// anyState is ReplicaSets of any sizes and states.
func anyState(r *rand.Rand) *model {
	m := newModel(int32(r.IntN(10)), rolling(anyAmount(r), anyAmount(r)))
	if r.IntN(4) == 0 {
		m.deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	m.deployment.Spec.Paused = r.IntN(4) == 0
	m.deployment.Spec.RevisionHistoryLimit = new(int32(r.IntN(3)))
	for i := range r.IntN(5) {
		set := m.newPart().set
		set.UID, set.Name = types.UID(fmt.Sprint("s", i)), fmt.Sprint("web-", i)
		set.CreationTimestamp = metav1.NewTime(noon.Add(-time.Duration(r.IntN(5)) * time.Hour))
		set.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("web:", i)
		replicas, have := int32(r.IntN(10)*r.IntN(2)), int32(r.IntN(10))
		set.Spec.Replicas = &replicas
		set.Generation, set.Status.ObservedGeneration = 2, int64(1+r.IntN(2))
		set.Status.Replicas, set.Status.AvailableReplicas = have, int32(r.IntN(int(have)+1))
		for _, name := range []string{desiredAnnotation, maxAnnotation, revisionAnnotation} {
			if r.IntN(4) > 0 {
				metav1.SetMetaDataAnnotation(&set.ObjectMeta, name, strconv.Itoa(r.IntN(12)))
			}
		}
		m.sets = append(m.sets, set)
	}
	return m
}

func TestADecisionIsAFixedPoint(t *testing.T) {
	r := seeded(t)
	for range 1000 {
		m := anyState(r)
		before := len(m.sets)
		p := m.decide(t) // fails if there is more to decide
		for _, c := range p.update {
			if *c.set.Spec.Replicas < 0 {
				t.Fatalf("%s of %d", p, before)
			}
		}
		was := m.deployment.Status
		if now := m.status(outcome{}); !equality.Semantic.DeepEqual(now, was) {
			t.Fatalf("a status that is written changes: %+v, %+v", was, now)
		}
	}
}

// sized has ReplicaSets of sizes, oldest first; the last is of the template.
func sized(m *model, noted string, sizes ...int32) {
	for i, n := range sizes {
		m.image(fmt.Sprint("web:", i))
		set := m.newPart().set
		set.UID, set.Name, set.Spec.Replicas = types.UID(fmt.Sprint(i)), fmt.Sprint("web-", i), &n
		set.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(i) * time.Minute))
		set.Status = appsv1.ReplicaSetStatus{Replicas: n}
		desired, most, _ := strings.Cut(noted, " ")
		set.Annotations = map[string]string{desiredAnnotation: desired, maxAnnotation: most, revisionAnnotation: fmt.Sprint(i + 1)}
		m.sets = append(m.sets, set)
	}
}

func TestAPausedRollIsScaledInProportion(t *testing.T) {
	for name, c := range map[string]struct {
		n           int32
		surge       int32
		noted       string
		sizes, want []int32
	}{
		"up, as the documentation of Kubernetes has it": {15, 3, "10 13", []int32{8, 5}, []int32{11, 7}},
		"down":                                {5, 3, "10 13", []int32{8, 5}, []int32{5, 3}},
		"down to nothing":                     {0, 3, "10 13", []int32{8, 5}, []int32{0, 0}},
		"the rest goes to the newest of two":  {11, 0, "10 10", []int32{5, 5}, []int32{5, 6}},
		"the oldest of two shrinks first":     {9, 0, "10 10", []int32{5, 5}, []int32{4, 5}},
		"only one has replicas":               {7, 3, "10 13", []int32{10, 0}, []int32{7, 0}},
		"none has: the new one gets all":      {4, 1, "0 1", []int32{0, 0}, []int32{0, 4}},
		"three":                               {20, 0, "10 10", []int32{5, 3, 2}, []int32{10, 6, 4}},
		"as it was":                           {10, 3, "10 13", []int32{8, 5}, []int32{8, 5}},
		"without a note, by the last status":  {20, 0, "none", []int32{5, 5}, []int32{10, 10}},
		"without a note and a status, no way": {12, 0, "none", []int32{0, 0}, []int32{0, 12}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(c.n, rolling(ints(c.surge), ints(1)))
			sized(m, c.noted, c.sizes...)
			m.deployment.Spec.Paused = true
			m.deployment.Status.Replicas = 10
			m.decide(t)
			var got []int32
			for _, set := range m.sets {
				got = append(got, *set.Spec.Replicas)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%v become %v, want %v", c.sizes, got, c.want)
			}
		})
	}
}

// Pods that never become ready give way to the next template, and leave those alone
// that serve.
// The pods of a new revision are progress from the first on, also if the status has
// yet to tell of the revision: it then counts those of the last one.
func TestTheFirstPodsOfARevisionAreProgress(t *testing.T) {
	m := newModel(3, rolling(ints(1), ints(0)))
	m.decide(t)
	d := m.deployment
	d.Status = appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}
	for noted, want := range map[string]bool{"": true, m.revision(): false} {
		d.Annotations = map[string]string{revisionAnnotation: noted}
		now := d.Status
		now.Replicas, now.UpdatedReplicas = 4, 1
		if got := m.advanced(now); got != want {
			t.Errorf("with revision %q noted, progress is %v", noted, got)
		}
	}
}

func TestBrokenPodsGiveWay(t *testing.T) {
	m := newModel(10, rolling(ints(3), ints(2)))
	sized(m, "10 13", 8, 5)
	m.sets[0].Status.AvailableReplicas = 8 // and none of the five
	if p := decide(m.seen); !p.nothing() {
		t.Errorf("with eight that serve, of which eight are needed: %s", p)
	}
	m.image("web:next")
	p := decide(m.seen)
	if got := p.String(); !strings.Contains(got, "update web-1 from 5 to 0") || strings.Contains(got, "web-0") {
		t.Errorf("the next template: %s", got)
	}
}

func TestRevisionsAreCountedAndRemembered(t *testing.T) {
	m := newModel(0, rolling(ints(1), ints(0)))
	m.deployment.Annotations = map[string]string{"team": "a", corev1.LastAppliedConfigAnnotation: "{}"}
	for i, image := range []string{"web:1", "web:2", "web:1", "web:3", "web:1"} {
		m.image(image)
		m.decide(t)
		if got := m.revision(); got != fmt.Sprint(i+1) {
			t.Errorf("step %d has revision %s", i, got)
		}
	}
	set := m.split().new.set
	if got := set.Annotations[historyAnnotation]; got != "1,3" {
		t.Errorf("the history is %q", got)
	}
	if _, copied := set.Annotations[corev1.LastAppliedConfigAnnotation]; copied || set.Annotations["team"] != "a" {
		t.Errorf("the annotations are %v", set.Annotations)
	}
	long := ""
	for i := range 3000 {
		long = longer(long, fmt.Sprint(i))
	}
	if len(long) > maxHistory || !strings.HasSuffix(long, ",2999") || strings.HasPrefix(long, ",") {
		t.Errorf("a long history is %q", long)
	}
}

func TestHash(t *testing.T) {
	m := newModel(1, rolling(ints(1), ints(0)))
	template := &m.deployment.Spec.Template
	plain, collided, again := hash(template, nil), hash(template, new(int32(1))), hash(template.DeepCopy(), nil)
	if plain != again || plain == collided {
		t.Errorf("hashes are %s, %s and, after a collision, %s", plain, again, collided)
	}
	set := m.newPart().set
	if set.Name != "web-"+plain || set.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != plain ||
		set.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] != plain || set.Spec.Template.Labels["app"] != "web" {
		t.Errorf("the ReplicaSet is %+v", set)
	}
	if name := setName(strings.Repeat("d", 253), plain); len(name) != 253 || !strings.HasSuffix(name, "d-"+plain) {
		t.Errorf("a long name is %q", name)
	}
}
