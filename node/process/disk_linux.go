package process

import "syscall"

// disk is how large the disk of a folder is, and how much of it is left.
func disk(folder string) (size, left int64) {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0, 0
	}
	return int64(s.Blocks) * s.Bsize, int64(s.Bavail) * s.Bsize
}
