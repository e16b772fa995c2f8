package pods

import "strings"

// expand replaces $(NAME) by a variable's value as Kubernetes does: $$ is a
// dollar sign, and what names no variable stays as it is.
func expand(text string, variables map[string]string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		end := strings.IndexByte(rest, ')')
		switch {
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "(") && end > 0:
			out.WriteString(valueOr(variables, rest[1:end], "$"+rest[:end+1]))
			text = rest[end+1:]
		default:
			out.WriteByte('$')
			text = rest
		}
	}
}

func valueOr(variables map[string]string, name, otherwise string) string {
	if value, ok := variables[name]; ok {
		return value
	}
	return otherwise
}
