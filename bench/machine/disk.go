//go:build linux

package machine

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

// SizeOf is what the files in a folder take of the disk, in bytes. Files may come
// and go meanwhile.
func SizeOf(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var size int64
			size, err = blocksOf(entry)
			total += size
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return total, err
}

func blocksOf(entry fs.DirEntry) (int64, error) {
	info, err := entry.Info()
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512, nil // whatever the file system's are
}
