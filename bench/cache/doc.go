// Package cache measures our cache beside client-go's thread-safe store: heap
// per pod, and writes while ten readers list. Run it with `make bench`, or:
//
//	go test -run '^$' -bench . -benchtime 1x ./cache/...
//
// Folder trees measures the candidates for the tree inside; pods makes the pods.
package cache
