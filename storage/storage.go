// Package storage keeps bytes under a revision.
//
// A [Store] maps keys to values. Every write takes the next value of one
// growing [Revision] that spans all keys, so that a revision names a state of
// the whole store: [Store.Scan] reads the state at a revision, and
// [Store.Watch] replays what happened after one. A list at revision N followed
// by a watch after N misses nothing and repeats nothing.
//
// The engines are in the subpackages embedded and etcd; storagetest is the
// suite that both pass. docs/storage.md lists the promises and their tests.
package storage

import "context"

// Revision numbers the writes of a store. An empty store stands at revision 1
// and its first write makes revision 2; zero means "none".
type Revision uint64

// Key names a value. Any bytes are allowed, the empty key included.
type Key string

const (
	// MaxKeyBytes is the longest key that a store takes.
	MaxKeyBytes = 4 << 10
	// MaxValueBytes is the longest value that a store takes. An etcd cluster
	// may be set to less; values up to 1.5 MiB less 16 KiB fit every cluster.
	MaxValueBytes = 8 << 20
)

// Entry is a key's value and the revision that wrote it. The zero Revision
// says that the key does not exist. Values are shared: never modify one.
type Entry struct {
	Key      Key
	Value    []byte
	Revision Revision
}

// Exists reports whether the entry stands for a stored value.
func (e Entry) Exists() bool { return e.Revision != 0 }

// Write is a conditional write of one key. Make one with [Create], [Replace]
// or [Delete].
type Write struct {
	Key Key
	// Value of a deletion is a note for those who watch. Not every engine keeps it.
	Value  []byte
	Delete bool
	// At is the revision that the key must stand at; zero wants it absent.
	At Revision
	// Guard, if not nil, is a second condition, on any key.
	Guard *Guard
}

// Guard is where a key must stand at the moment of a write, which is of another
// key as a rule; zero wants it absent.
type Guard struct {
	Key Key
	At  Revision
}

// Create writes key if it does not exist.
func Create(key Key, value []byte) Write { return Write{Key: key, Value: value} }

// Replace writes key if it stands at revision at.
func Replace(key Key, value []byte, at Revision) Write {
	return Write{Key: key, Value: value, At: at}
}

// Delete removes key if it stands at revision at.
func Delete(key Key, at Revision) Write { return Write{Key: key, Delete: true, At: at} }

// Result is the outcome of a commit.
type Result struct {
	// Revision is the write's revision; zero if it did not happen.
	Revision Revision
	// Previous is what the key held before the write or, with ErrConflict, what
	// it holds instead of what the write expected. With ErrGuard it is not told.
	Previous Entry
}

// Range selects the keys of a scan, in byte order.
type Range struct {
	// Prefix is shared by all keys of the range.
	Prefix Key
	// Start, if not empty, is the first key to return. To go on after a page,
	// set it to [Page.Next].
	Start Key
	// Limit bounds the number of entries; zero or less means no bound.
	Limit int
	// Revision is the state to read; zero means the newest.
	Revision Revision
}

// Page is a part of a scan's result.
type Page struct {
	Entries []Entry
	// Revision is the state that was read; pages of one scan must ask for it.
	Revision Revision
	// Next is where the following page starts; meaningful only with More.
	Next Key
	// More says that the range has entries past this page.
	More bool
}

// Event is one write, as a watcher sees it.
type Event struct {
	Key      Key
	Revision Revision
	// Deleted says that the write removed the key; Value is then nil, or the note
	// that the deletion was given.
	Deleted bool
	Value   []byte
	// Previous is what the write replaced or removed.
	Previous Entry
}

// Batch is what a watcher has to tell.
type Batch struct {
	// Events are in the order of their revisions.
	Events []Event
	// Through says that all events of the watched prefix up to this revision
	// have been delivered, by this batch or an earlier one. It never falls.
	Through Revision
}

// Store is a revisioned key-value store. All methods but Close may be called
// concurrently. After Close every call answers ErrClosed.
type Store interface {
	// Commit makes one conditional write, durable when it returns. With
	// ErrConflict, ErrGuard, ErrInvalid or ErrTooLarge the write did not happen;
	// after any other error it may have happened, or may yet. If neither the key
	// nor its guard stand where they should, it is ErrConflict.
	Commit(ctx context.Context, w Write) (Result, error)

	// Get returns the newest entry of key, or ErrNotFound. It sees every commit
	// that returned before it was called.
	Get(ctx context.Context, key Key) (Entry, error)

	// Scan returns the entries of a range as they stood at one revision. It
	// answers ErrCompacted for a state that is gone, ErrFuture for one that is
	// yet to come.
	Scan(ctx context.Context, r Range) (Page, error)

	// Watch returns a cursor over the events of a prefix that come after a
	// revision, which may be in the past, the newest, or yet to come. It does no
	// I/O: errors come from Next.
	Watch(prefix Key, after Revision) Watcher

	// Compact forgets the states before a revision. Scans below it and watches
	// after a revision below it answer ErrCompacted from then on; so does
	// compacting again at or below it. Compacting past the head is ErrFuture.
	Compact(ctx context.Context, at Revision) error

	// Head returns the newest revision. It counts every commit that returned
	// before it was called.
	Head(ctx context.Context) (Revision, error)

	// Close ends all watchers with ErrClosed and returns once nothing of the
	// store runs any more. Closing twice is harmless.
	Close() error
}

// Watcher is a cursor over events: ordered, each exactly once, none left out.
// It buffers nothing that grows while nobody calls Next.
type Watcher interface {
	// Next blocks until there are events, or progress that was asked for. It
	// answers ErrCompacted when events that it has yet to deliver are gone. An
	// error of ctx leaves the cursor where it was, so that a later Next goes on.
	// Next must not be called concurrently with itself.
	Next(ctx context.Context) (Batch, error)

	// RequestProgress makes a Next return, with no events if there are none,
	// once the watcher has seen everything up to the head as it is now. It may
	// be called while Next blocks.
	RequestProgress()

	// Close releases the cursor. A blocked Next returns ErrClosed.
	Close()
}

// HealthChecker is implemented by stores that can tell whether they work.
type HealthChecker interface {
	// Health returns nil if the store can take writes, else what stops it.
	Health(ctx context.Context) error
}
