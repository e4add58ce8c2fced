package storage

import "fmt"

// Check returns ErrInvalid or ErrTooLarge for a write that no store takes.
func (w Write) Check() error {
	switch {
	case len(w.Key) > MaxKeyBytes:
		return fmt.Errorf("key of %d bytes, at most %d are allowed: %w", len(w.Key), MaxKeyBytes, ErrTooLarge)
	case len(w.Value) > MaxValueBytes:
		return fmt.Errorf("value of %d bytes for %q, at most %d are allowed: %w", len(w.Value), w.Key, MaxValueBytes, ErrTooLarge)
	case w.Guard != nil && len(w.Guard.Key) > MaxKeyBytes:
		return fmt.Errorf("guard of %d bytes, at most %d are allowed: %w", len(w.Guard.Key), MaxKeyBytes, ErrTooLarge)
	case w.Delete && w.At == 0:
		return fmt.Errorf("delete of %q without the revision it stands at: %w", w.Key, ErrInvalid)
	}
	return nil
}
