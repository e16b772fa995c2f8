// Command pulumi-resource-kubernetes is Pulumi's provider for Kubernetes. Its module
// has no main that builds from the module alone: the two files are copied out of it
// by build.sh.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

// version of the SDK's newest release that the provider compiles with.
const version = "4.22.2"

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var mapping []byte

func main() { provider.Serve("kubernetes", version, schema, mapping) }
