package embedded

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/even-keel/evenkeel/storage"
)

// fence is a file system that goes read-only for good with the first write or
// sync that fails. Pebble retries some failed writes, exits the process on
// others, and panics past recovery when its log fails; behind the fence none of
// them changes what is on the disk. So that Pebble survives, and with it the
// readers, a failure of the log is kept from it: once the fence is down, log
// files and directories swallow what is written to them. Nothing relies on it,
// because no commit counts that ends after the fence went down.
type fence struct {
	vfs.FS
	// down is closed when the fence has gone read-only; err says why from then on.
	down chan struct{}
	once sync.Once
	err  error
	// released is closed when nobody waits for the disk any more.
	released chan struct{}

	mu sync.Mutex
	// held are the files to remove when removals are released.
	holding bool
	held    []string
}

func newFence(fs vfs.FS) *fence {
	return &fence{FS: fs, down: make(chan struct{}), released: make(chan struct{})}
}

// trip takes the fence down. Only the first reason counts.
func (f *fence) trip(why error) {
	f.once.Do(func() {
		f.err = fmt.Errorf("%w: %w", storage.ErrReadOnly, why)
		close(f.down)
	})
}

// failure returns why the fence is down, or nil.
func (f *fence) failure() error {
	select {
	case <-f.down:
		return f.err
	default:
		return nil
	}
}

// guard runs one change of the disk, and trips on its failure.
func (f *fence) guard(op, name string, change func() error) error {
	err := f.failure()
	if err == nil {
		if err = change(); err == nil {
			return nil
		}
		err = fmt.Errorf("%s %s: %w", op, name, err)
		f.trip(err)
	}
	if strings.HasSuffix(name, logSuffix) || strings.HasSuffix(name, dirSuffix) {
		return nil
	}
	return err
}

const (
	logSuffix = ".log"
	dirSuffix = "/" // given to the names of opened directories
)

// retryPause spaces Pebble's retries of a flush that can never succeed.
const retryPause = time.Second

func (f *fence) open(op, name string, open func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	err := f.guard(op, name, func() (err error) {
		file, err = open()
		return err
	})
	if err != nil {
		f.pause()
		return nil, err
	}
	if file == nil { // a log that goes nowhere
		if file, err = vfs.NewMem().Create("log", vfs.WriteCategoryUnspecified); err != nil {
			return nil, err
		}
	}
	return &fencedFile{File: file, fence: f, name: name}, nil
}

func (f *fence) pause() {
	pause := time.NewTimer(retryPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-f.released:
	}
}

func (f *fence) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open("create", name, func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f *fence) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.open("open", name, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

func (f *fence) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open("reuse", oldname, func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

func (f *fence) OpenDir(name string) (vfs.File, error) {
	dir, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &fencedFile{File: dir, fence: f, name: name + dirSuffix}, nil
}

func (f *fence) Link(oldname, newname string) error {
	return f.guard("link", newname, func() error { return f.FS.Link(oldname, newname) })
}

func (f *fence) Rename(oldname, newname string) error {
	return f.guard("rename", newname, func() error { return f.FS.Rename(oldname, newname) })
}

func (f *fence) MkdirAll(dir string, perm os.FileMode) error {
	return f.guard("make", dir, func() error { return f.FS.MkdirAll(dir, perm) })
}

// A file that cannot be removed costs space, not data: it trips nothing.

func (f *fence) Remove(name string) error {
	if err := f.failure(); err != nil {
		return err
	}
	if f.hold(name) {
		return nil
	}
	return f.FS.Remove(name)
}

func (f *fence) RemoveAll(name string) error {
	if err := f.failure(); err != nil {
		return err
	}
	return f.FS.RemoveAll(name)
}

func (f *fence) hold(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holding {
		f.held = append(f.held, name)
	}
	return f.holding
}

// holdRemovals puts removals off until releaseRemovals.
func (f *fence) holdRemovals() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holding = true
}

func (f *fence) releaseRemovals() {
	f.mu.Lock()
	held := f.held
	f.holding, f.held = false, nil
	f.mu.Unlock()
	for _, name := range held {
		_ = f.Remove(name)
	}
}

func (f *fence) Unwrap() vfs.FS { return f.FS }

// fencedFile is an open file behind the fence.
type fencedFile struct {
	vfs.File
	fence *fence
	name  string
}

func (f *fencedFile) Write(p []byte) (n int, err error) {
	err = f.fence.guard("write", f.name, func() error {
		n, err = f.File.Write(p)
		return err
	})
	return whole(n, p, err)
}

func (f *fencedFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.fence.guard("write", f.name, func() error {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return whole(n, p, err)
}

// whole pretends that a swallowed write was made.
func whole(n int, p []byte, err error) (int, error) {
	if err == nil {
		n = len(p)
	}
	return n, err
}

// Preallocate is a hint: a disk too full for it fails the write instead.
func (f *fencedFile) Preallocate(offset, length int64) error {
	_ = f.File.Preallocate(offset, length)
	return nil
}

func (f *fencedFile) Close() error {
	if err := f.File.Close(); err != nil {
		return f.fence.guard("close", f.name, func() error { return err })
	}
	return nil
}

func (f *fencedFile) Sync() error {
	return f.fence.guard("sync", f.name, f.File.Sync)
}

func (f *fencedFile) SyncData() error {
	return f.fence.guard("sync", f.name, f.File.SyncData)
}

func (f *fencedFile) SyncTo(length int64) (full bool, err error) {
	err = f.fence.guard("sync", f.name, func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}
