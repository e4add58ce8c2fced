// Package machine starts the processes that a benchmark measures, ends them, and
// reads from /proc what they use; all but this comment is for Linux.
package machine
