//go:build peer

// Package peer pins the programs that Evenkeel is measured beside. Build them
// with:
//
//	go build -o DIR k8s.io/kubernetes/cmd/kube-apiserver go.etcd.io/etcd/server/v3
package peer

import (
	_ "go.etcd.io/etcd/server/v3/etcdmain" // etcd
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
)
