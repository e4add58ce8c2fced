package storage

import "errors"

// What a store can answer. Errors are wrapped with what was being done to
// which key: compare with errors.Is.
var (
	ErrNotFound  = errors.New("key not found")
	ErrConflict  = errors.New("key is not at the expected revision")
	ErrGuard     = errors.New("the key that guards the write is not at the expected revision")
	ErrCompacted = errors.New("revision has been compacted")
	ErrFuture    = errors.New("revision is in the future")
	ErrInvalid   = errors.New("invalid request")
	ErrTooLarge  = errors.New("key or value too large")
	ErrClosed    = errors.New("store is closed")

	// ErrReadOnly: the disk failed or is full. Reads go on, writes are refused
	// until the store is opened anew on a disk that works.
	ErrReadOnly = errors.New("store is read-only after a disk failure")
	// ErrCorrupt: what is on the disk is not what was written.
	ErrCorrupt = errors.New("store is corrupt")
	// ErrLocked: another process holds the store.
	ErrLocked = errors.New("store is in use by another process")
	// ErrUnavailable: the storage cluster did not answer.
	ErrUnavailable = errors.New("storage cluster is unavailable")
)
