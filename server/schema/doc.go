// Package schema applies the structural schemas of custom resources to objects:
// it prunes what a schema does not know, fills in defaults, and validates, rules
// in CEL included. It holds no objects and does no I/O.
//
// The algorithms are those of k8s.io/apiextensions-apiserver, so that objects
// and errors come out as they do from the real server. What this package adds
// is when they run: a schema is read when it is first needed, its validators and
// CEL programs when something is first validated, and equal schemas are one, by
// a [Pool].
package schema
