package transport

// Deeper says whether objects and lists of a JSON text stand in each other deeper
// than most, before a parser follows them there. Of what is no JSON it says
// something, and a parser refuses it.
func Deeper(text []byte, most int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
