// Package watch keeps the newest state of all objects in memory, as the bytes
// they are stored in, and tells watchers what changes.
//
// One goroutine, [Hub.Run], follows the store. For each resource the hub holds a
// tree of its objects and a ring of its latest events. A reader takes a
// snapshot of the tree, which later writes do not change. A watcher is a
// [Cursor]: a revision into the ring. It holds no events and nobody waits for
// it; one that the ring has left behind goes on from the store's own log, and
// ends only when that has been compacted.
//
// # Invariants
//
//   - Events are applied in the order of their revisions. A resource's tree
//     holds all of its events up to its revision, and [Hub.Through] never passes
//     an event that is not in its tree.
//   - Objects and events are immutable and shared. What is derived from an
//     object (its decoded form, another encoding) is made once, by the first
//     who wants it.
package watch
