package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/even-keel/evenkeel/storage"
)

// TestDamageIsNeverSilent damages each file of a store in turn. Whoever opens
// and reads it gets an error or everything, never less.
func TestDamageIsNeverSilent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for name, clean := range map[string]bool{"closed cleanly": true, "crashed": false} {
		t.Run(name, func(t *testing.T) {
			fs, want := filledDisk(t, clean)
			files, err := fs.List("data")
			if err != nil {
				t.Fatal(err)
			}
			caught := map[string]int{}
			for _, file := range files {
				for range 12 {
					hurt := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
					how := damage(t, hurt, "data/"+file, rng)
					got, err := readEverything(hurt)
					switch {
					case err != nil && !errors.Is(err, storage.ErrCorrupt):
						t.Errorf("%s %s: %v, which does not say that the store is corrupt", file, how, err)
					case err != nil:
						caught[file]++
					case got != want:
						t.Errorf("%s %s: less was read, and no error", file, how)
					}
				}
			}
			if len(caught) == 0 {
				t.Error("no damage was ever noticed: the test damages nothing that matters")
			}
			t.Logf("damage noticed: %v", caught)
		})
	}
}

// filledDisk returns a disk with a store of several tables and a log, and all
// that can be read from it.
func filledDisk(t *testing.T, clean bool) (*vfs.MemFS, string) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	s := openOn(t, fs)
	for i := range 300 {
		value := []byte(fmt.Sprintf("value %d %s", i, strings.Repeat("y", i)))
		if _, err := s.Commit(t.Context(), storage.Create(storage.Key(fmt.Sprintf("/k/%03d", i)), value)); err != nil {
			t.Fatal(err)
		}
		if i%100 == 50 {
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.writeFloor(s.tail.head()); err != nil {
		t.Fatal(err)
	}
	// All that was written is on the disk, as after a kill.
	crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !clean {
		fs = crashed
	}
	want, err := readEverything(fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}))
	if err != nil {
		t.Fatal(err)
	}
	return fs, want
}

// readEverything opens the store and reads its state and its history.
func readEverything(fs vfs.FS) (string, error) {
	s, err := Open(Options{Dir: "data", fs: fs})
	if err != nil {
		return "", err
	}
	defer func() { _ = s.Close() }()
	ctx := context.Background()
	page, err := s.Scan(ctx, storage.Range{})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintln(&out, page)
	w := s.Watch("", firstRevision)
	defer w.Close()
	for through := firstRevision; through < page.Revision; {
		batch, err := w.Next(ctx)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&out, batch.Events)
		through = batch.Through
	}
	return out.String(), nil
}

func damage(t *testing.T, fs *vfs.MemFS, path string, rng *rand.Rand) string {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	how := "removed"
	if kind := rng.IntN(3); kind == 0 || len(data) == 0 {
		if err := fs.Remove(path); err != nil {
			t.Fatal(err)
		}
		return how
	} else if kind == 1 {
		n := rng.IntN(len(data))
		data, how = data[:n], fmt.Sprintf("cut to %d bytes", n)
	} else {
		at := rng.IntN(len(data))
		data[at] ^= 1 << rng.IntN(8)
		how = fmt.Sprintf("bit flipped at %d of %d", at, len(data))
	}
	out, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(out.Sync(), out.Close()); err != nil {
		t.Fatal(err)
	}
	return how
}
