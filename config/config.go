// Package config holds what is applied to a cluster, numbered in the order of
// its installation, for the embedded mode to apply the very same.
package config

import "embed"

// Files are the manifests.
//
//go:embed *.yaml 100-crds/*.yaml
var Files embed.FS
