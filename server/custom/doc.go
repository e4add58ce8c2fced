// Package custom turns a CustomResourceDefinition into kinds that the server can
// serve: one [Version] for each version of it that is served, which is a
// [kinds.Kind] whose objects are unstructured.
//
// A definition is kept without its schemas, which are by far the most of it.
// They are read out of its JSON when an object is first written or read.
//
// What the server decides about definitions (which names are accepted, what is
// established) is in [Decide]; it is pure.
package custom
