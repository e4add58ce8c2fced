// Package controller is what authors of controllers write against: a function that
// is called with the key of each object that needs to be looked at, and everything
// around it.
//
// # A controller
//
//	c := controller.New("foo", r.Reconcile,
//		controller.For[*v1alpha1.Foo](),
//		controller.Owns[*appsv1.Deployment](),
//		controller.Workers(2),
//	)
//
// [For] gives the controller its kind, [Owns] maps objects to the owner that
// controls them, [Claims] does so for kinds that select what they own, [Watches] maps
// others by a function, and [Channel] brings in what is outside of the cluster; a
// [Feed] is a source of one's own. Predicates ([GenerationChanged], [Where] and others) leave
// out changes. [NewTyped] hands over the object itself.
//
// Controllers are added to a manager, or to a [Base] where there is no need for one.
//
// # A reconcile
//
// A [Reconciler] gets a [Request]: the key, the causes for which it is called, and an
// ID that all its writes carry. It returns [Done], [Requeue], [RequeueAfter] or an
// error, which is retried with a backoff unless it is [Terminal]. Panics are errors.
// [Log] is a logger that tells all that.
//
// Clients made of the base read from the cache, and see what was written through them
// before the watch tells of it. Objects that they return are shared: copy before you
// change one. An index ([informer.Index], given by [With]) is read as a field of its
// name:
//
//	controller.Owns[*corev1.Pod](controller.With(informer.Index("node", nodeOf)))
//	pods.List(ctx, client.Field("node", "n1"))
//
// # Helpers
//
// [CreateOrUpdate], [CreateOrPatch] and [Apply] make objects what they should be;
// [SetController] and [Controls] tell whose they are, [Claim] adopts orphans and
// releases strangers; [Finalize] cleans up before an
// object goes; [SetCondition] tells in its status how it is. [WaitFor] waits for a
// revision.
//
// # When things fail
//
// A controller whose kind does not exist, or that lacks a right, waits and says so in
// its [Status]; it begins when that has changed, and others are not concerned. A key
// whose reconciles cause each other is a hot loop, which the log and the status name.
// [IgnoreOwnWrites] leaves out reconciles that only one's own writes cause, and [Paced]
// has bursts of changes cause few.
package controller
