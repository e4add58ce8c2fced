// Package cache is the tree of our cache, linked here to be measured beside the
// trees of others. Docs/adr/0011 has the figures.
package cache
