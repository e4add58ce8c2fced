package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/informer"
)

// run shows tables and does what is typed, until the context ends or "quit" comes.
// The end of stdin is not the end.
func (c *centre) run(ctx context.Context, stdin io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var worker sync.WaitGroup
	worker.Go(func() { c.work(ctx) })
	defer worker.Wait()
	defer c.apps.ShutDown()
	for commands := read(ctx, stdin); ; {
		select {
		case <-ctx.Done():
			return nil
		case line, ok := <-commands:
			if !ok {
				<-ctx.Done()
				return nil
			}
			text, err := c.do(ctx, strings.TrimSpace(line))
			if errors.Is(err, errQuit) {
				return nil
			}
			if err != nil {
				text = err.Error() + "\n"
			}
			c.screen.say(text)
		}
	}
}

// read returns the lines of stdin. Its goroutine is one that nobody can end while it
// reads: it ends with the program.
func read(ctx context.Context, stdin io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(stdin); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// followDefinitions has the kinds of all CRDs be watched while they are there.
func (c *centre) followDefinitions() {
	in := informer.For[object](c.set, informer.Resource(definitions))
	in.Handle(func(d informer.Delta[object]) {
		resource, ok := servedBy(d.Object())
		switch {
		case d.Type == informer.Deleted:
			_ = c.remove(d.Key.Name) // it may never have been served
		case ok:
			c.watch(d.Key.Name, resource) // the name is plural.group, as for all kinds
		}
	})
}

// servedBy is the resource of a CRD, in the version that is stored, once it is
// established.
func servedBy(crd object) (schema.GroupVersionResource, bool) {
	c, ok := condition(crd, "Established")
	if !ok || c.status != "True" {
		return schema.GroupVersionResource{}, false
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if m, ok := v.(map[string]any); ok && m["storage"] == true {
			version, _ := m["name"].(string)
			return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}, true
		}
	}
	return schema.GroupVersionResource{}, false
}
