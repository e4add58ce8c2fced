package embedded

import (
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// slowSync is a disk whose log syncs wait while they are held.
type slowSync struct {
	vfs.FS
	hold    atomic.Bool
	held    chan struct{}
	release chan struct{}
}

func (s *slowSync) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, logSuffix) {
		return f, err
	}
	return &slowFile{File: f, disk: s}, nil
}

type slowFile struct {
	vfs.File
	disk *slowSync
}

func (f *slowFile) wait() {
	if f.disk.hold.Load() {
		select {
		case f.disk.held <- struct{}{}:
		default:
		}
		<-f.disk.release
	}
}

func (f *slowFile) Sync() error {
	f.wait()
	return f.File.Sync()
}

func (f *slowFile) SyncData() error {
	f.wait()
	return f.File.SyncData()
}

func (f *slowFile) SyncTo(n int64) (bool, error) {
	f.wait()
	return f.File.SyncTo(n)
}
