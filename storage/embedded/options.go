package embedded

import (
	"errors"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// DefaultHistoryBytes is the history that a store keeps unless told otherwise.
const DefaultHistoryBytes = 256 << 20

// Options say where and how a store keeps its data. Exactly one of Dir and
// Memory must be set.
type Options struct {
	// Dir is the store's directory, made if it does not exist.
	Dir string
	// Memory keeps everything in memory; it is gone with Close.
	Memory bool
	// NoSync answers commits before they are on the disk. A crash of the machine
	// then loses the newest ones. For tests.
	NoSync bool
	// HistoryBytes bounds the keys and values of past events that are kept for
	// watches and scans at a revision. Beyond it the oldest are compacted. Zero
	// means DefaultHistoryBytes.
	HistoryBytes int64
	// Logger hears of what goes wrong in the background; nil is silent.
	Logger *slog.Logger

	// fs replaces the file system, for tests that crash or fill it.
	fs vfs.FS
}

func (o Options) withDefaults() (Options, error) {
	if (o.Dir == "") != o.Memory {
		return o, errors.New("set exactly one of Dir and Memory")
	}
	if o.HistoryBytes < 0 {
		return o, errors.New("HistoryBytes must not be negative")
	}
	if o.HistoryBytes == 0 {
		o.HistoryBytes = DefaultHistoryBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.fs != nil:
	case o.Memory:
		o.fs = vfs.NewMem()
	default:
		o.fs = vfs.Default
	}
	if o.Memory {
		o.Dir, o.NoSync = "store", true
	}
	return o, nil
}
