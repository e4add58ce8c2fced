// Replicas keeps Deployments from being smaller than their annotation says:
//
//	kubectl annotate deployment web example.com/min-replicas=3
package main

import (
	"context"
	"flag"
	"log"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/manager"
)

const annotation = "example.com/min-replicas"

func main() {
	var o manager.Options
	o.AddFlags(flag.CommandLine)
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("%q: it takes no arguments; --help tells more", flag.Args())
	}
	mgr, err := manager.New(o) // --kubeconfig, $KUBECONFIG, in a pod, or the local evenkeel
	if err != nil {
		log.Fatal(err)
	}
	mgr.Add(newController(mgr))
	if err := mgr.Run(manager.Signals()); err != nil {
		log.Fatal(err)
	}
}

func newController(mgr *manager.Manager) *controller.Controller {
	deployments, told := client.Of[*appsv1.Deployment](mgr), mgr.Events("replicas")
	return controller.NewTyped("replicas", func(ctx context.Context, _ controller.Request, d *appsv1.Deployment) (controller.Result, error) {
		if d == nil || d.Annotations[annotation] == "" {
			return controller.Done, nil
		}
		least, err := strconv.ParseInt(d.Annotations[annotation], 10, 32)
		if err != nil {
			told.Event(d, events.Warning, "BadAnnotation", "%s: %v", annotation, err)
			return controller.Done, controller.Terminal(err) // until somebody changes it
		}
		if was := *d.Spec.Replicas; int64(was) < least {
			*d.Spec.Replicas = int32(least) // d is a copy
			if _, err := deployments.Update(ctx, d); err != nil {
				return controller.Done, err // and it is tried again, later each time
			}
			told.Event(d, events.Normal, "ScaledUp", "from %d to %d replicas", was, least)
		}
		return controller.Done, nil
	})
}
