package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/even-keel/evenkeel/storage"
)

// holderFile names the process that holds the directory's lock.
const holderFile = "HOLDER"

// lockDir takes the directory for this process.
func lockDir(fs vfs.FS, dir string) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, fs)
	if err != nil {
		return nil, lockError(fs, dir, err)
	}
	if err := writeHolder(fs, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", holderFile, err), lock.Close())
	}
	return lock, nil
}

func lockError(fs vfs.FS, dir string, err error) error {
	if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("lock: %w", err)
	}
	holder := "an unknown process"
	if f, openErr := fs.Open(fs.PathJoin(dir, holderFile)); openErr == nil {
		defer func() { _ = f.Close() }()
		if name, readErr := io.ReadAll(f); readErr == nil && len(name) > 0 {
			holder = strings.TrimSpace(string(name))
		}
	}
	return fmt.Errorf("%w: %s holds it; stop that one or choose another directory (%w)", storage.ErrLocked, holder, err)
}

func writeHolder(fs vfs.FS, dir string) error {
	f, err := fs.Create(fs.PathJoin(dir, holderFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "process %d (%s)\n", os.Getpid(), filepath.Base(os.Args[0]))
	return errors.Join(err, f.Close())
}
