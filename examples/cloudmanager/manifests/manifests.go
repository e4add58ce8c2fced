// Package manifests holds the manifests in its folder.
package manifests

import _ "embed"

// Definition is the CustomResourceDefinition of CloudManager.
//
//go:embed crd.yaml
var Definition []byte
