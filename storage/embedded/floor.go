package embedded

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/even-keel/evenkeel/storage"
)

// The floor file is one line: a revision that the store has durably reached,
// and the line's checksum. It is not synced: an older floor is a floor too.
const (
	floorFile   = "FLOOR"
	floorFormat = "revision %d crc %08x\n"
)

func floorSum(rev storage.Revision) uint32 {
	return crc32.ChecksumIEEE(fmt.Append(nil, uint64(rev)))
}

func (s *Store) writeFloor(rev storage.Revision) error {
	name := s.fence.PathJoin(s.opts.Dir, floorFile)
	f, err := s.fence.Create(name+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, floorFormat, uint64(rev), floorSum(rev))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.fence.Rename(name+".new", name)
}

// raiseFloor writes the head as the floor if it has moved. Without syncs the
// head may yet be lost, so only Close raises the floor then.
func (s *Store) raiseFloor() error {
	head := s.tail.head()
	if s.opts.NoSync || head == s.floor {
		return nil
	}
	if err := s.writeFloor(head); err != nil {
		return err
	}
	s.floor = head
	return nil
}

// readFloor returns the floor, and zero if there is none or it is unreadable:
// the floor protects the data, and is none of it. existed says that the
// directory has held a store.
func readFloor(fs vfs.FS, dir string) (floor storage.Revision, existed bool, err error) {
	f, err := fs.Open(fs.PathJoin(dir, floorFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = f.Close() }()
	line, err := io.ReadAll(f)
	if err != nil {
		return 0, true, err
	}
	var rev uint64
	var sum uint32
	if _, err := fmt.Sscanf(string(line), floorFormat, &rev, &sum); err != nil || sum != floorSum(storage.Revision(rev)) {
		return 0, true, nil
	}
	return storage.Revision(rev), true, nil
}
