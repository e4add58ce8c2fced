// Package manager runs controllers: with the caches they share, election of a leader,
// health checks, metrics, a view of all they do, and an orderly end.
//
//	mgr, err := manager.New(manager.Options{})
//	...
//	mgr.Add(controller.New("foo", r.Reconcile, controller.For[*v1alpha1.Foo]()))
//	err = mgr.Run(manager.Signals())
//
// A [Manager] is a [client.Source], whose clients read from the cache and see what
// they have written; see [controller.Base], which it has.
//
// # Start and end
//
// [Manager.Run] starts the caches, then, if there is an election and once it is won,
// the controllers. A standby has its caches warm. When the context ends, reconciles
// that run may finish, the lease is released, the caches stop, pending events are
// written and the HTTP server ends, within [Options].Grace. That leadership is lost
// is an error: the program should end, and be started anew.
//
// # Seen from outside
//
// With [Options].Listen there are, over plain HTTP,
//
//	/livez /healthz    whether the program should be restarted
//	/readyz            whether it works, which wants caches that are up to date
//	/metrics           for Prometheus; names are those of controller-runtime
//	/debug/evenkeel    all of it as JSON: controllers, queues, informers, the last
//	                   reconciles with their causes and what they wrote
//
// What /debug/evenkeel shows is for operators: names of objects and errors, no
// contents. It is as open as the address is.
package manager
