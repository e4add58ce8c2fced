// Package garbage is the garbage collector: it deletes objects whose owners are gone,
// and carries out the deletions that wait for dependents, those in the foreground
// and those that orphan.
//
// It watches the metadata of all kinds that the server lets list, watch and delete,
// custom ones as they come and go; events are left out. What an object owns is found
// by an index over the owner's UID. No object is deleted unless
//
//   - each of its owners is known to be gone: by the event of its deletion, or by a
//     read that the server answered, or waits for its dependents to be deleted, and
//   - it is the object that was looked at, in just that state.
//
// References to kinds that the server does not serve are left alone, and looked at
// again later.
package garbage
