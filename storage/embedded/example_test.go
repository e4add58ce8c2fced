package embedded_test

import (
	"context"
	"fmt"
	"log"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
)

func Example() {
	ctx := context.Background()
	s, err := embedded.Open(embedded.Options{Memory: true}) // or Dir: "/var/lib/..."
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	first, err := s.Commit(ctx, storage.Create("/pods/web", []byte("v1")))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Commit(ctx, storage.Replace("/pods/web", []byte("v2"), first.Revision)); err != nil {
		log.Fatal(err)
	}
	_, err = s.Commit(ctx, storage.Replace("/pods/web", []byte("v3"), first.Revision))
	fmt.Println(err)

	then, err := s.Scan(ctx, storage.Range{Prefix: "/pods/", Revision: first.Revision})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("at revision %d: %s\n", then.Revision, then.Entries[0].Value)

	w := s.Watch("/pods/", first.Revision)
	defer w.Close()
	batch, err := w.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range batch.Events {
		fmt.Printf("revision %d: %s became %s\n", e.Revision, e.Previous.Value, e.Value)
	}
	// Output:
	// replace "/pods/web": it stands at revision 3, expected at 2: key is not at the expected revision
	// at revision 2: v1
	// revision 3: v1 became v2
}
