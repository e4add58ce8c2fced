// Package discovery makes the documents that tell clients what a server serves:
// /api, /apis, /apis/G, /apis/G/V and /api/v1, and the aggregated forms of the
// first two, which hold everything at once.
//
// It is pure: [New] takes a list of resources, and what it returns never
// changes. A server makes new documents when its resources change.
package discovery
