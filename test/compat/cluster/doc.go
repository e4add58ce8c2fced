// Package cluster starts our API server in the test's own process: over TLS, on
// each of the storage engines, with credentials of its administrator. A server
// can be stopped and started again where it was, or be reached through a
// [Proxy] that cuts connections.
package cluster
