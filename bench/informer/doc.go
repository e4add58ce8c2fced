// Package informer measures our informer beside client-go's: how long the first
// sync of 50,000 pods takes, and what the heap holds after it. Run it with `make
// bench`, or:
//
//	go test -run '^$' -bench . -benchtime 3x ./informer/...
//
// Both are served by one server in the same process that has its answers ready,
// byte for byte, so that it is the clients that are measured.
package informer
