package informer_test

import (
	"fmt"

	"github.com/even-keel/evenkeel/informer"
)

// For a server that can answer from memory if it need not be sure that nothing is
// newer.
func ExampleAnyVersion() {
	set, maps := watched("example-any-version", informer.AnyVersion())
	defer set.Shutdown()
	fmt.Println(maps.Count())
	// Output: 3
}

// For a server that is faster at lists than at streams.
func ExampleNoWatchList() {
	set, maps := watched("example-no-watch-list", informer.NoWatchList())
	defer set.Shutdown()
	fmt.Println(maps.Count())
	// Output: 3
}

// For those who want to know who wrote which field.
func ExampleKeepManagedFields() {
	set, maps := watched("example-managed-fields", informer.KeepManagedFields())
	defer set.Shutdown()
	web, _ := maps.Get("example-managed-fields", "web")
	for _, fields := range web.ManagedFields {
		fmt.Println(fields.Operation, fields.FieldsType)
	}
	// Output: Update FieldsV1
}
