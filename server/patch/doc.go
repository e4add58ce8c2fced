// Package patch changes objects: x
package patch
