// Package embedded is a [storage.Store] in this process, on Pebble.
//
// # Layout
//
// Three key ranges share one Pebble database:
//
//	k <key> <^revision>   the key's value at that revision, or a tombstone
//	l <revision>          the log: which key the revision wrote, what it replaced
//	m <name>              facts about the store: layout version, compaction
//
// Revisions are dense: the log holds one record for each revision after the
// compacted one. A value is written once, under k; the log refers to it.
//
// # Invariants
//
//   - One goroutine, the committer, assigns revisions. It takes whatever writes
//     wait, decides each against the state before it, and commits them as one
//     batch with one sync. The head moves, watchers hear, and writers are
//     answered only after that sync: a state that was seen by anybody is durable.
//   - Pebble shows a batch to readers before its sync ends. Readers therefore
//     read at the head, never "the newest": what is above it does not exist yet.
//   - Compaction moves the compacted revision first, durably, and deletes
//     second. A reader opens its iterator first and looks at the compacted
//     revision second. So a reader that finds its revision not compacted holds
//     an iterator in which nothing it needs is missing.
//   - After the first failed write or sync the fence lets no byte reach the
//     disk any more: what Pebble believes from then on does not matter, and the
//     head never moves again.
//   - The floor file holds a revision that was durable when it was written. A
//     store that opens below its floor has lost writes and says so.
package embedded
