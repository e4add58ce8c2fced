// Package informer keeps the objects of a kind in memory, as a server has them,
// and tells handlers what becomes of them.
//
// # Informers
//
// A [Set] holds the informers of a program, and [For] gets one of them: for a
// type, and for a part of its objects.
//
//	set := informer.NewSet(conn, informer.Config{})
//	pods := informer.For[*corev1.Pod](set, informer.InNamespace("default"))
//	set.Start()
//	defer set.Shutdown()
//
// Nothing is sent before Start. Those who ask for the same share one watch and
// one cache; it begins when the first asks, and ends with the last
// [Informer.Close]. [Set.WaitForSync] waits for the first state of all, and
// [Set.Shutdown] leaves no goroutine behind.
//
// Go types, *unstructured.Unstructured and *metav1.PartialObjectMetadata are used
// alike; the latter two need a [Kind] or a [Resource].
//
// # Reading
//
// Reads are those of package cache: they take no lock, and a list is of one
// moment. Objects are shared and read-only.
//
//	for pod := range pods.List(cache.Label("app", "web")) {
//
// [Index] adds secondary indexes, [Transform] changes objects before they are
// stored, and [Compact] keeps them encoded. [Set.View] reads several kinds at one
// point in time.
//
// A [Layer] puts the cache before clients: they read from it, and see what they
// have written before the watch does.
//
// # Handlers
//
// A handler is told, in order, what became of each object since it last heard of
// it: a [Delta] is Added, Updated, Deleted, Replaced or Sync.
//
//	pods.Handle(func(d informer.Delta[*corev1.Pod]) { queue.Add(d.Key) })
//
// It may join at any time, and begins with an Added for each object there is;
// when it has been told of all, its [Registration] is synced. Every handler has a
// goroutine. One that is slow delays nobody and loses nothing that it needs: of
// each key it hears the latest state, so that what is pending for it is bounded by
// the number of keys. What it hears of a key is always a legal history. An object
// that was deleted while nobody could see it is Deleted in its last known state,
// with Unknown set; one that took the name of another, told apart by its UID, is
// a Deleted and an Added.
//
// [HandlerOptions] filter, leave out updates without a change, and repeat
// everything now and then; [Informer.HandleBatch] takes all that is pending at
// once.
//
// # Scopes
//
// [InNamespace], [Labels] and [Fields] narrow what is watched. Several namespaces,
// or several selections ([Select]), are watched each by itself and shown as one. A
// [Scope] can be changed while informers use it: what stays selected stays in the
// cache.
//
// An object that several selections have is there once, in its newest revision.
// One that goes from one selection to another may be Deleted and Added if the
// watch of the first is faster.
//
// # Failing
//
// A state is streamed (WatchList); from servers that do not do that, or do not
// come to an end, it is listed. A watch that ends goes on from where it was. When
// the server has forgotten that revision, a new state replaces the old, at once:
// never are there two in memory. If more than a quarter of the objects changed,
// these go to the cache as they come; see docs/adr/0013.
//
// Errors are retried with a backoff, as [Status] shows and [Config].OnError hears.
// A kind that does not exist yet, or a missing right, concerns its informer alone:
// it says so, and goes on when that has changed. When a kind goes, its objects do.
package informer
