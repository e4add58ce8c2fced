// Package namespace deletes what is in a namespace that is being deleted, and lets
// the namespace go when nothing is left.
//
// All resources are deleted that the server serves in namespaces, custom ones too:
// pods first, so that nothing that they need goes before them, and when these are
// gone all else. What has finalizers holds the namespace up. The namespace's
// conditions tell how far it is.
package namespace
