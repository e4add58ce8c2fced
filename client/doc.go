// Package client reads and writes the objects of a Kubernetes API server: ours or
// any other.
//
// # Connecting
//
// [LoadConfig] finds the cluster as every tool does, and [Connect] makes the one
// connection that all clients share. Neither sends anything:
//
//	cfg, err := client.LoadConfig(client.ConfigOptions{})
//	conn, err := client.Connect(cfg)
//
// # Clients
//
// A [Client] is for one kind, and costs nothing to make. Go types, unstructured
// objects and metadata alone have the same methods:
//
//	pods := client.Of[*corev1.Pod](conn)
//	foos := client.Of[*unstructured.Unstructured](conn, client.Kind(fooKind))
//	meta := client.Of[*metav1.PartialObjectMetadata](conn, client.Kind(fooKind))
//	web := pods.In("web") // one namespace
//
// Types of k8s.io/api need no scheme, and their kinds no discovery. Of others, the
// server is asked how it serves them when a client is first used; if it does not,
// [IsNoKind] is true of the error, and the next call asks again. A client may so be
// made before its CRD is installed.
//
// # Reading
//
//	pod, err := pods.Get(ctx, client.Key{Namespace: "web", Name: "a"})
//	for pod, err := range web.List(ctx, client.Label("app", "shop"), client.Chunk(500)) {
//		...
//	}
//	all, revision, err := web.All(ctx)
//	for event, err := range web.Watch(ctx, client.From(revision)) {
//		...
//	}
//
// A list is decoded object by object while it arrives, and never held twice.
// [Client.All] also tells the revision of what it read, from which a watch misses
// nothing; with [InitialEvents], a watch does both.
//
// # Writing
//
// [Client.Create], [Client.Update], [Client.UpdateStatus], [Client.Apply],
// [Client.Delete] and [Client.DeleteCollection] are what they are called;
// [Client.Patch] takes a [MergePatch], [StrategicPatch], [JSONPatch] or
// [ApplyPatch]. What else a kind has is a subresource ([Sub]), or a stream
// ([Client.Stream]):
//
//	scales := client.Sub[*autoscalingv1.Scale](deployments, "scale")
//
// # Errors and retries
//
// Errors of the server are those of k8s.io/apimachinery/pkg/api/errors; the
// questions most asked of them are here: [IsNotFound], [IsConflict], [IsExpired].
// A request that the server asks to send again later (429, or 5xx, with
// Retry-After) is, up to ten times and while its context lasts; so is a read whose
// connection broke. Nothing else is repeated, and requests are not limited unless
// the configuration says so. [Retries] changes that for a connection, [Once] for a
// call.
//
// # Headers and observers
//
// [WithHeader] has the writes of a context carry a header, such as the id of the
// reconcile that makes them. [Observe] tells of each request: for metrics, traces,
// and what was written on whose behalf.
//
// # For informers and caches
//
// [Client.ListRaw] and [Client.WatchRaw] hand out objects undecoded, in order, into
// buffers of the caller's; [Client.Decode] may be called for them by as many
// goroutines as there are processors; a [Sharer] decodes several times as fast what
// nobody is going to change. A [Layered] source puts a cache before the
// server: clients made from it read there, and tell it what they wrote.
//
// Docs/adr/0012 tells why it is built as it is.
package client
