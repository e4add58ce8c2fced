package etcd_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/etcd"
)

func ExampleOpen() {
	store, err := etcd.Open(context.Background(), etcd.Options{
		Endpoints: []string{"http://127.0.0.1:1"}, // where nothing listens
	})
	if errors.Is(err, storage.ErrUnavailable) {
		fmt.Println("the cluster does not answer")
		return
	}
	defer func() { _ = store.Close() }()
	// Output: the cluster does not answer
}

func ExampleTLSFiles_Config() {
	_, err := etcd.TLSFiles{CA: "no-such-ca.pem"}.Config()
	fmt.Println(err)
	// Output: read the etcd CA file: open no-such-ca.pem: no such file or directory
}
