// Package controllers lists the built-in controllers, for programs that run all of
// them or some.
package controllers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/cronjob"
	"github.com/even-keel/evenkeel/controllers/daemonset"
	"github.com/even-keel/evenkeel/controllers/deployment"
	"github.com/even-keel/evenkeel/controllers/endpoints"
	"github.com/even-keel/evenkeel/controllers/endpointslice"
	"github.com/even-keel/evenkeel/controllers/endpointslicemirroring"
	"github.com/even-keel/evenkeel/controllers/garbage"
	"github.com/even-keel/evenkeel/controllers/job"
	"github.com/even-keel/evenkeel/controllers/namespace"
	"github.com/even-keel/evenkeel/controllers/nodelifecycle"
	"github.com/even-keel/evenkeel/controllers/podgc"
	"github.com/even-keel/evenkeel/controllers/pvcprotection"
	"github.com/even-keel/evenkeel/controllers/replicaset"
	"github.com/even-keel/evenkeel/controllers/rootca"
	"github.com/even-keel/evenkeel/controllers/serviceaccount"
	"github.com/even-keel/evenkeel/controllers/statefulset"
	"github.com/even-keel/evenkeel/controllers/tainteviction"
	"github.com/even-keel/evenkeel/controllers/ttl"
	"github.com/even-keel/evenkeel/events"
)

// ErrUnknown says that there is no controller of a name.
var ErrUnknown = errors.New("there is no such controller")

// Host is what controllers are added to; a manager is one.
type Host interface {
	client.Source
	Add(...*controller.Controller)
	Events(component string) *events.Recorder
}

// Options are what some of them need to know.
type Options struct {
	// RootCA are the certificates that the API server's is checked against, in PEM:
	// rootca tells every namespace of them. Without, rootca is left out.
	RootCA []byte
}

// builtin is one of the list.
type builtin struct {
	name string
	// component is who its events are from.
	component string
	make      func(client.Source, *events.Recorder, Options) []*controller.Controller
}

var all = []builtin{
	{"cronjob", "cronjob-controller", one(cronjob.New)},
	{"daemonset", "daemonset-controller", one(daemonset.New)},
	{"deployment", "deployment-controller", one(deployment.New)},
	{"endpoints", "endpoint-controller", one(endpoints.New)},
	{"endpointslice", "endpoint-slice-controller", one(endpointslice.New)},
	{"endpointslicemirroring", "endpoint-slice-mirroring-controller", one(endpointslicemirroring.New)},
	{"garbage", "garbage-collector-controller", one(garbage.New)},
	{"job", "job-controller", several(job.New)},
	{"namespace", "namespace-controller", one(namespace.New)},
	{"nodelifecycle", "node-controller", several(nodelifecycle.New)},
	{"podgc", "pod-garbage-collector-controller", one(podgc.New)},
	{"pvcprotection", "persistentvolumeclaim-protection-controller", one(pvcprotection.New)},
	{"replicaset", "replicaset-controller", one(replicaset.New)},
	{"rootca", "root-ca-certificate-publisher-controller", newRootCA},
	{"serviceaccount", "serviceaccount-controller", one(serviceaccount.New)},
	{"statefulset", "statefulset-controller", one(statefulset.New)},
	{"tainteviction", "taint-eviction-controller", one(tainteviction.New)},
	{"ttl", "ttl-after-finished-controller", one(ttl.New)},
}

func one(f func(client.Source, *events.Recorder) *controller.Controller) func(client.Source, *events.Recorder, Options) []*controller.Controller {
	return func(s client.Source, told *events.Recorder, _ Options) []*controller.Controller {
		return []*controller.Controller{f(s, told)}
	}
}

func several(f func(client.Source, *events.Recorder) []*controller.Controller) func(client.Source, *events.Recorder, Options) []*controller.Controller {
	return func(s client.Source, told *events.Recorder, _ Options) []*controller.Controller { return f(s, told) }
}

func newRootCA(s client.Source, told *events.Recorder, o Options) []*controller.Controller {
	if len(o.RootCA) == 0 {
		return nil
	}
	return []*controller.Controller{rootca.New(s, told, rootca.Options{CA: o.RootCA})}
}

// Names are those of all built-in controllers, sorted.
func Names() []string {
	names := make([]string, len(all))
	for i, b := range all {
		names[i] = b.name
	}
	return names
}

// Choose returns the names that a list means: "*" is all of known, "none" is none, a
// name is that one, and a name behind "-" is taken out, wherever it stands. The error
// of a name that is not known is [ErrUnknown].
func Choose(list []string, known []string) ([]string, error) {
	chosen, out := map[string]bool{}, map[string]bool{}
	for _, item := range list {
		name, not := strings.CutPrefix(strings.TrimSpace(item), "-")
		switch {
		case name == "*" && !not:
			for _, k := range known {
				chosen[k] = true
			}
		case name == "none" && len(list) == 1 && !not:
		case !slices.Contains(known, name):
			return nil, fmt.Errorf("%w: %q; there are %s", ErrUnknown, name, strings.Join(known, ", "))
		case not:
			out[name] = true
		default:
			chosen[name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(k string) bool { return !chosen[k] || out[k] }), nil
}

// Add adds the controllers of these names to a host.
func Add(h Host, names []string, o Options) error {
	for _, name := range names {
		i := slices.IndexFunc(all, func(b builtin) bool { return b.name == name })
		if i < 0 {
			return fmt.Errorf("%w: %q", ErrUnknown, name)
		}
		h.Add(all[i].make(h, h.Events(all[i].component), o)...)
	}
	return nil
}
