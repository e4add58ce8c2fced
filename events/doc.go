// Package events tells people what a controller did, and why it could not, as
// Events that kubectl shows beside their object.
//
// # Recording
//
// A [Recorder] is made once for a component, and run beside its controllers:
//
//	rec := events.New(conn, events.Options{Component: "foo-controller"})
//	go rec.Run(ctx)
//
//	rec.Event(foo, events.Normal, "Scaled", "to %d replicas", n)
//	rec.Record(events.Event{
//		Regarding: foo, Related: pod, Type: events.Warning,
//		Reason: "PodFailed", Action: "Replacing", Note: "exit code 1",
//	})
//
// Neither call waits for the server, whatever becomes of it; a reconcile is never
// slowed down by its events. Objects may be typed, unstructured or metadata alone.
// Those that clients and informers return say their kind; of others it is known
// for the types of k8s.io/api, those with a method APIKind and those in the
// connection's [client.Scheme]. Events are kept in the object's namespace, and
// those about objects outside of namespaces in "default".
//
// # One event, counted
//
// The same event again, of whatever revision of its object, does not make another:
// its series is counted, and kubectl shows it as
//
//	2m (x7 over 16m)
//
// The server hears of the count at once if it has not for a while, and otherwise
// after a pause that grows from a second to [Options].Refill while the event goes
// on. No count is lost by that: the next has it all. A series ends when it has been
// silent for [Options].SeriesFor. If the server forgets the event before, it is
// made again, with its count.
//
// # Too many
//
// Events are similar if they have the object, the type and the reason in common.
// Of similar events with different notes, [Options].Similar are told apart within
// [Options].SimilarWithin; the others are counted as one whose note begins with
// "(combined from similar events): ". The writes for similar events come out of a
// bucket that holds [Options].Burst and gets one more each [Options].Refill. When
// it is empty, counts wait and new events are dropped.
//
// # Failing
//
// Writes that fail are repeated with a backoff, for five to nine minutes; meanwhile
// all else goes on. An event that the server refuses is dropped, and logged: the
// right to write events is missing, or the namespace goes. When the context of
// [Recorder.Run] ends, what is pending is written, for [Options].Grace at most.
// What can be pending is bounded by [Options].MaxSeries. [Recorder.Stats] says what
// became of all events.
//
// Programs need the verbs create and patch for events of the group events.k8s.io.
package events
