package stack

import (
	"fmt"
	"sort"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// Validate says what in a Stack's spec cannot be served, as one line that names
// the field, or "".
func Validate(stack *pulumiv1.Stack) string {
	spec := &stack.Spec
	switch {
	case Sourceless(stack): // whatever the source is
	case hasGit(stack): // comes before the others, as in the reference
		if problem := validateGit(stack); problem != "" {
			return problem
		}
	case spec.FluxSource != nil:
		return "fluxSource: Flux sources are not served by this version of Updraft; use programRef"
	case spec.ProgramRef != nil && spec.ProgramRef.Name == "":
		return "programRef.name: must not be empty"
	}
	if problem := validateRefs("envRefs", spec.EnvRefs, stack.Namespace); problem != "" {
		return problem
	}
	return validateRefs("secretsRef", spec.SecretRefs, stack.Namespace)
}

func validateRefs(field string, refs map[string]pulumiv1.ResourceRef, namespace string) string {
	for _, key := range sortedKeys(refs) {
		if problem := validateRef(refs[key], namespace); problem != "" {
			return fmt.Sprintf("%s[%s]: %s", field, key, problem)
		}
	}
	return ""
}

func validateRef(ref pulumiv1.ResourceRef, namespace string) string {
	switch ref.SelectorType {
	case pulumiv1.ResourceSelectorLiteral:
		if ref.LiteralRef == nil {
			return "type Literal needs the field literal"
		}
	case pulumiv1.ResourceSelectorSecret:
		if ref.SecretRef == nil {
			return "type Secret needs the field secret"
		}
		if ref.SecretRef.Namespace != "" && ref.SecretRef.Namespace != namespace {
			return "cross-namespace refs are not allowed; put the Secret into the Stack's own namespace"
		}
	case pulumiv1.ResourceSelectorEnv, pulumiv1.ResourceSelectorFS:
		return fmt.Sprintf("ref type %q is deprecated; use Secret or Literal", ref.SelectorType)
	default:
		return fmt.Sprintf("ref type %q is not known; use Secret or Literal", ref.SelectorType)
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
