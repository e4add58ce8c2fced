package explore

import (
	"context"
	"fmt"

	"github.com/even-keel/evenkeel/client"
)

// Step changes something in the cluster, or says what is wrong with it. The connection
// meets no faults. Each run takes it anew.
type Step func(ctx context.Context, conn *client.Conn) error

// Create is a step that makes objects.
func Create[T client.Object](objs ...T) Step {
	return func(ctx context.Context, conn *client.Conn) error {
		for _, obj := range objs {
			if _, err := client.Of[T](conn).Create(ctx, obj); err != nil {
				return fmt.Errorf("create %s: %w", client.KeyOf(obj), err)
			}
		}
		return nil
	}
}

// Patch is a step that changes an object.
func Patch[T client.Object](key client.Key, p client.Patch) Step {
	return func(ctx context.Context, conn *client.Conn) error {
		if _, err := client.Of[T](conn).Patch(ctx, key, p); err != nil {
			return fmt.Errorf("patch %s: %w", key, err)
		}
		return nil
	}
}

// Delete is a step that deletes an object.
func Delete[T client.Object](key client.Key, opts ...client.DeleteOption) Step {
	return func(ctx context.Context, conn *client.Conn) error {
		if err := client.Of[T](conn).Delete(ctx, key, opts...); err != nil {
			return fmt.Errorf("delete %s: %w", key, err)
		}
		return nil
	}
}
