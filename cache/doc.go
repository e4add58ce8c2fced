// Package cache holds the objects of a kind in memory, indexed, for many readers.
//
// # Reading
//
// A [Store] is a set of objects by namespace and name. Reads take no lock and
// are never held up by a writer:
//
//	pod, ok := pods.Get("default", "web-1")
//	for pod := range pods.List(cache.InNamespace("default"), cache.Label("app", "web")) {
//		...
//	}
//
// A list is ordered by key and is of one moment, however long the loop takes.
// Queries narrow it, and an object must fit all of them: [InNamespace], [Label]
// and [Selector], [Index], [IndexPrefix] and [IndexRange], [Field], [Prefix];
// [After] and [Until] bound it, [Descending] turns it around. Labels are indexed: a list reads
// the smallest set of objects that one of its queries can name, and checks the
// others on these. Only what no index answers (not in, greater than) looks at
// more.
//
// Several reads that have to agree read one [Snapshot]:
//
//	now := pods.Snapshot()
//	total, ready := now.Count(), now.Count(cache.Index("ready", "true"))
//
// A snapshot costs nothing to take. It never changes, and it knows up to which
// [Revision] it is complete. Stores of different kinds that have a [Group] in
// common can be read at one point in time.
//
// # Objects are shared
//
// What is handed out is the store's own object, and others read it too: never
// change it. DeepCopy is the road to change. In tests, set
// [Options.DetectMutations] and call [Store.Verify] at the end: it names the
// objects that somebody changed, their fields, and who had got them.
//
// # Writing
//
// Writers wait for each other. A [Batch] is made visible at once, and
// [Store.Apply] returns what it changed, with the objects from before; Set,
// Delete and Replace are short for batches of one sort. A store owns what it is
// given: it drops managed fields and lets equal parts of objects share memory
// ([Interner]), so nobody else may be reading them; see [Options.AsIs]. Who makes
// many objects on several processors has them prepared there ([Store.Prepare]).
// Readers do not hold up writers, and long reads let them run.
//
// # Memory
//
// A pod takes about a third of what it takes in client-go. A kind that is large
// and seldom read can be kept compact instead ([Options.Compact]): encoded and
// compressed, at a tenth. Names, revisions, labels and index values are in memory
// still, so that queries decode nothing, and [Snapshot.Entries] lists without
// decoding. Each read of an object decodes it: two reads of one revision may
// return two objects, and a list decodes one at a time. [Store.Stats] says how
// much memory is used for what.
//
// # What it is not
//
// It starts no goroutine, does no I/O and knows no server. Package informer fills
// it. Docs/adr/0011 tells why it is built as it is.
package cache
