package garbage_test

import (
	"context"
	"fmt"
	"log"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// What an object owns goes with it.
func ExampleNew() {
	s, err := evenkeeltest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- collect(ctx, s.Config()) }() // adds garbage.New(base, recorder) to a base, and runs it

	conn, err := client.Connect(s.Config())
	if err != nil {
		log.Fatal(err)
	}
	maps := client.Of[*object](conn, client.Kind(configMap))
	owner, err := maps.Create(ctx, newObject(configMap, "owner"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := maps.Create(ctx, newObject(configMap, "owned", ownedBy(owner))); err != nil {
		log.Fatal(err)
	}
	if err := maps.Delete(ctx, client.KeyOf(owner), client.Propagation(background)); err != nil {
		log.Fatal(err)
	}
	for event, err := range maps.Watch(ctx, client.From(owner.GetResourceVersion())) {
		if err != nil {
			log.Fatal(err)
		}
		if event.Type == client.Deleted {
			fmt.Println(event.Object.GetName(), "is gone")
			if event.Object.GetName() == "owned" {
				break
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	// Output:
	// owner is gone
	// owned is gone
}
