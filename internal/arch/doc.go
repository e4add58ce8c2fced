// Package arch holds the architecture as a test: which folders are packages,
// what each may import, and what the go.mod files may ask for.
//
// The tables are in rules.go. To add a package, add its row there first; to
// let one import more, say in the commit why the layers still hold.
// docs/adr/0002-layout-and-import-rules.md has the reasons.
package arch
