package operator

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	v1 "github.com/even-keel/evenkeel/examples/cloudmanager/api/v1"
)

// seen is what a reconcile has seen.
type seen struct {
	cm *v1.CloudManager
	// objects are those that the CloudManager owns or names, by nameOf. They are
	// read-only.
	objects map[string]client.Object
}

// plan is what is to be done.
type plan struct {
	// writes are made one after the other, until one fails.
	writes     []write
	phase      v1.Phase
	conditions []condition
}

// write makes, changes or deletes an object.
type write struct {
	verb verb
	obj  client.Object
	// why is said of a deletion.
	why string
}

func (w write) String() string { return string(w.verb) + " " + nameOf(w.obj) }

type verb string

const (
	create verb = "Create"
	update verb = "Update"
	remove verb = "Delete"
)

// condition is one of the status, as it should be.
type condition struct {
	kind, reason, message string
	met                   bool
	// warns says that people should hear of it.
	warns bool
}

// The reasons of the conditions.
const (
	isReady     = "Ready"
	isStarting  = "Starting"
	isWaiting   = "Waiting"
	invalidSpec = "InvalidSpec"
	notOwned    = "NotOwned"
	refused     = "Refused"
)

// stuck is a plan that says what is in the way.
func stuck(phase v1.Phase, reason, format string, args ...any) plan {
	return plan{phase: phase, conditions: []condition{{kind: v1.Ready, reason: reason, message: fmt.Sprintf(format, args...), warns: true}}}
}

// part is one of the three, and what makes it up: the last of its objects runs it.
type part struct {
	name      string
	condition string
	starting  v1.Phase
	objects   []client.Object
}

// partsOf are the parts of an application in their order.
func partsOf(s seen) []part {
	cm := s.cm
	auth := authOf(cm, s.objects["Secret/"+authName(cm)])
	return []part{
		{"db", v1.DBReady, v1.StartingDB, []client.Object{auth, databaseOf(cm, auth)}},
		{"identity", v1.IdentityReady, v1.StartingIdentity, []client.Object{deploymentOf(cm, "identity", cm.Spec.Identity)}},
		{"front", v1.FrontReady, v1.StartingFront, []client.Object{deploymentOf(cm, "front", cm.Spec.Front)}},
	}
}

// decide says what is to be done about what was seen. It changes nothing.
func decide(s seen) plan {
	if errs := validate(s.cm); len(errs) > 0 {
		return stuck(v1.Failed, invalidSpec, "%v", errs.ToAggregate())
	}
	parts := partsOf(s)
	wanted := map[string]bool{}
	for _, p := range parts {
		for _, obj := range p.objects {
			name := nameOf(obj)
			wanted[name] = true
			if have := s.objects[name]; have != nil && !controller.Controls(s.cm, have) {
				return stuck(v1.Pending, notOwned, "%s exists, and is not controlled by this CloudManager", name)
			}
		}
	}
	p := plan{phase: v1.Running}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if obj := s.objects[name]; !wanted[name] && controller.Controls(s.cm, obj) && obj.GetDeletionTimestamp() == nil {
			p.writes = append(p.writes, write{remove, obj, "the specification does not name it any more"})
		}
	}
	p.bringUp(s, parts)
	return p
}

// bringUp brings up the parts, until one has to be waited for.
func (p *plan) bringUp(s seen, parts []part) {
	ready := condition{kind: v1.Ready, reason: isReady, message: "all parts are ready", met: true}
	for _, part := range parts {
		c := part.state(s)
		if ready.met {
			writes := part.writes(s)
			p.writes = append(p.writes, writes...)
			if len(writes) > 0 && c.met { // what is ready is what was
				c.reason, c.message, c.met = isStarting, "it is being changed", false
			}
			if !c.met {
				p.phase = part.starting
				ready = condition{kind: v1.Ready, reason: isStarting, message: part.name + ": " + c.message}
			}
		}
		p.conditions = append(p.conditions, c)
	}
	p.conditions = append(p.conditions, ready)
}

// writes are those that make a part what it should be. What is being deleted is waited
// for.
func (p part) writes(s seen) (writes []write) {
	for _, want := range p.objects {
		have := s.objects[nameOf(want)]
		switch {
		case have == nil:
			writes = append(writes, write{create, want, ""})
		case have.GetDeletionTimestamp() != nil:
			return writes
		case !equality.Semantic.DeepEqual(selectorOf(have), selectorOf(want)):
			return append(writes, write{remove, have, "it was another part"}) // and is made when it is gone
		default:
			if now := fitted(have, want); !equality.Semantic.DeepEqual(have, now) {
				writes = append(writes, write{update, now, ""})
			}
		}
	}
	return writes
}

// state says whether most replicas of a part are ready.
func (p part) state(s seen) condition {
	c := condition{kind: p.condition, reason: isStarting}
	want := p.objects[len(p.objects)-1]
	have := s.objects[nameOf(want)]
	if have == nil {
		c.reason, c.message = isWaiting, "it is not there yet"
		return c
	}
	ready, of, current := replicas(have, want)
	c.message = fmt.Sprintf("%d of %d replicas are ready", ready, of)
	switch {
	case have.GetDeletionTimestamp() != nil:
		c.message = nameOf(have) + " is being deleted"
	case !current:
		c.message += ", before the last change"
	case 2*ready > of:
		c.reason, c.met = isReady, true
	}
	return c
}

// replicas returns how many replicas are ready, of how many that should be, and
// whether that is told of the object's present generation. Who does not tell a
// generation at all is believed.
func replicas(have, want client.Object) (ready, of int32, current bool) {
	var observed int64
	switch have := have.(type) {
	case *appsv1.StatefulSet:
		ready, observed, of = have.Status.ReadyReplicas, have.Status.ObservedGeneration, *want.(*appsv1.StatefulSet).Spec.Replicas
	case *appsv1.Deployment:
		ready, observed, of = have.Status.ReadyReplicas, have.Status.ObservedGeneration, *want.(*appsv1.Deployment).Spec.Replicas
	}
	return ready, of, observed == 0 || observed >= have.GetGeneration()
}

func (c condition) status() metav1.ConditionStatus {
	if c.met {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
