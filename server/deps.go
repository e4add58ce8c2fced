//go:build deps

// Package server: temporary, keeps modules in go.mod while several hands build on them.
package server

import (
	_ "github.com/google/gnostic-models/openapiv2"
	_ "github.com/gorilla/websocket"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/tidwall/btree"
	_ "golang.org/x/net/http2"
	_ "golang.org/x/sync/errgroup"
	_ "gopkg.in/evanphx/json-patch.v4"
	_ "k8s.io/api/apidiscovery/v2"
	_ "k8s.io/apimachinery/pkg/util/managedfields"
	_ "k8s.io/apimachinery/pkg/util/strategicpatch"
	_ "k8s.io/client-go/applyconfigurations"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/tools/clientcmd"
	_ "k8s.io/kube-openapi/pkg/spec3"
	_ "k8s.io/kubectl/pkg/cmd"
	_ "sigs.k8s.io/structured-merge-diff/v6/typed"
	_ "sigs.k8s.io/yaml"
)
