// Package storage measures the embedded engine beside a one-member etcd on the
// same disk. Run it with `make bench`, or:
//
//	go test -run '^$' -bench . -benchtime 5x ./storage
package storage
