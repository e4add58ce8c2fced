// Package etcd keeps a [storage.Store] on an etcd cluster that already runs.
//
// Several stores, of several servers, may share a cluster and a prefix: every
// write is one conditional transaction, every read is linearizable, and a
// revision is the cluster's own. Revisions therefore grow with every write of
// anybody on the cluster, and a compaction by anybody, the cluster's own
// auto-compaction included, holds for all.
//
// The cluster must run etcd 3.5.8 or newer: older ones may announce progress
// to a watcher ahead of events (etcd issue 15220).
package etcd
