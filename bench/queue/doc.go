// Package queue measures the work queue beside client-go's and
// controller-runtime's. Run it with `make bench`, or:
//
//	go test -run '^$' -bench . -benchtime 5x ./queue
package queue
