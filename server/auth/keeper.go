package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// keeper keeps small named files. It is safe for concurrent use.
type keeper interface {
	// read returns a file, or an error that is fs.ErrNotExist.
	read(name string) ([]byte, error)
	// create keeps content under a name that has none, and returns what is kept
	// there: of several processes at the same time one wins, and all return its
	// content.
	create(name string, content []byte, d durability) ([]byte, error)
	// replace keeps content, whatever was there.
	replace(name string, content []byte, d durability) error
	// path names a file in errors.
	path(name string) string
}

// durability says what a crash of the machine may do to a new file.
type durability bool

const (
	// lasting: nothing, once it is written. That is a wait for the disk.
	lasting durability = true
	// remakable: it may be found empty, which then means that there is none.
	remakable durability = false
)

// ensure returns a file, which it makes if there is none.
func ensure(k keeper, name string, d durability, make func() ([]byte, error)) ([]byte, error) {
	content, err := existing(k, name, d)
	if !errors.Is(err, fs.ErrNotExist) {
		return content, err
	}
	if content, err = make(); err != nil {
		return nil, err
	}
	return k.create(name, content, d)
}

// existing reads a file; an empty one that can be made again is none.
func existing(k keeper, name string, d durability) ([]byte, error) {
	content, err := k.read(name)
	if err == nil && len(content) == 0 && d == remakable {
		return nil, fs.ErrNotExist
	}
	return content, err
}

// memory keeps files for as long as the process lives.
type memory struct {
	mu    sync.Mutex
	files map[string][]byte
}

func (m *memory) read(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if content, ok := m.files[name]; ok {
		return content, nil
	}
	return nil, fs.ErrNotExist
}

func (m *memory) create(name string, content []byte, d durability) ([]byte, error) {
	return content, m.replace(name, content, d)
}

func (m *memory) replace(name string, content []byte, _ durability) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = content
	return nil
}

func (*memory) path(name string) string { return name }

// folder keeps files in a directory, for the owner's eyes only. Several
// processes may use it at the same time.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

func (f folder) read(name string) ([]byte, error) { return os.ReadFile(f.path(name)) }

func (f folder) create(name string, content []byte, d durability) ([]byte, error) {
	path := f.path(name)
	temporary, err := writeTemporary(path, content, d)
	if err != nil {
		return nil, err
	}
	defer os.Remove(temporary)
	switch err := os.Link(temporary, path); {
	case err == nil:
		return content, nil
	case errors.Is(err, fs.ErrExist):
		there, err := existing(f, name, d) // another process was faster
		if !errors.Is(err, fs.ErrNotExist) {
			return there, err
		}
	}
	// An empty file, or a file system without links: the last one wins.
	return content, os.Rename(temporary, path)
}

func (f folder) replace(name string, content []byte, d durability) error {
	return writeFile(f.path(name), content, d)
}

// writeFile replaces a file, readable by its owner only, whole or not at all.
func writeFile(path string, content []byte, d durability) error {
	temporary, err := writeTemporary(path, content, d)
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		os.Remove(temporary)
		return err
	}
	return nil
}

// writeTemporary writes a file with mode 0600 beside path.
func writeTemporary(path string, content []byte, d durability) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err == nil && d == lasting {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return f.Name(), nil
}
