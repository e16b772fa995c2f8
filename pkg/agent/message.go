package agent

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// messageLimit is how long a message may be, in bytes.
const messageLimit = 4000

// cutNote ends a message that was cut.
const cutNote = " ... (cut: the run's log has the rest)"

var (
	// ansiCode is what a terminal would turn into colour.
	ansiCode = regexp.MustCompile("\x1b\\[[0-9;?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)") //nolint:gocritic // from space to slash: ECMA-48 has it so
	// colourMark is what the CLI would have turned into an ANSI code.
	colourMark = regexp.MustCompile(`<\{%[^%]*%\}>`)
	// verdict is an error that only says that there were errors.
	verdict = regexp.MustCompile(`(?i)^(error: )?(update|preview|refresh|destroy) failed$`)
	// section begins a part of what the CLI prints.
	section = regexp.MustCompile(`^[A-Z][A-Za-z ]*:\s*$`)
)

// explain gives the CLI's own words for why it failed: its errors, and the
// section Diagnostics if it printed one. Without either, the end of what it
// said; "" if it said nothing.
func explain(stdout, stderr string) string {
	stdout, stderr = plain(stdout), plain(stderr)
	parts := append(diagnosticsOf(stdout), errorsOf(stderr)...)
	if text := joinErrors(parts); text != "" {
		return text
	}
	for _, text := range []string{stderr, stdout} {
		if last := lastLines(text, 20); last != "" {
			return last
		}
	}
	return ""
}

// plain takes colours out of a text, and carriage returns.
func plain(text string) string {
	text = ansiCode.ReplaceAllString(text, "")
	text = colourMark.ReplaceAllString(text, "")
	return strings.ReplaceAll(text, "\r", "")
}

// errorsOf gives each error of a text with the lines that belong to it, which
// are all up to the next one that begins something else.
func errorsOf(text string) []string {
	var found []string
	inside := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "error: "):
			found, inside = append(found, line), true
		case strings.HasPrefix(line, "warning: "), strings.HasPrefix(line, "debug: "), strings.HasPrefix(line, "info: "):
			inside = false
		case inside:
			found[len(found)-1] += line
		}
	}
	return found
}

// diagnosticsOf gives the paragraphs of the section Diagnostics.
func diagnosticsOf(text string) []string {
	_, rest, found := strings.Cut("\n"+text, "\nDiagnostics:")
	if !found {
		return nil
	}
	var lines []string
	for i, line := range strings.Split(rest, "\n") {
		if i > 0 && section.MatchString(line) {
			break
		}
		if !verdict.MatchString(strings.TrimSpace(line)) {
			lines = append(lines, strings.TrimPrefix(line, "  "))
		}
	}
	return []string{strings.Join(lines, "\n")}
}

// joinErrors makes one text of errors: each once, and a mere verdict only if
// there is nothing else.
func joinErrors(errors []string) string {
	var kept, verdicts []string
	seen := map[string]bool{}
	for _, text := range errors {
		text = tidy(text)
		switch {
		case text == "" || seen[text]:
		case verdict.MatchString(text):
			verdicts = append(verdicts, text)
		default:
			kept = append(kept, text)
		}
		seen[text] = true
	}
	if len(kept) == 0 && len(verdicts) > 0 {
		kept = verdicts[:1]
	}
	return strings.Join(kept, "\n")
}

// tidy takes the empty lines out of a text, and what ends a line unseen.
func tidy(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimRight(line, " \t"); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// lastLines gives the last lines of a text that hold something.
func lastLines(text string, count int) string {
	lines := strings.Split(tidy(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

// shorten cuts a text to at most limit bytes, between letters, and says so.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	note := cutNote
	if limit < len(note) {
		note = ""
	}
	cut := limit - len(note)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + note
}

// silence stands in for the words of a CLI that said nothing.
func silence(code int) string {
	return fmt.Sprintf("The CLI ended with exit code %d and said nothing", code)
}

// hints say what to do about errors that a Stack's author meets often.
var hints = []struct{ text, hint string }{
	{"passphrase must be set with", "Set PULUMI_CONFIG_PASSPHRASE from a Secret through the Stack's envRefs"},
	{"incorrect passphrase", "The stack's secrets are encrypted with another passphrase than PULUMI_CONFIG_PASSPHRASE"},
	{"PULUMI_ACCESS_TOKEN must be set", "Set PULUMI_ACCESS_TOKEN from a Secret through the Stack's envRefs, or set another backend"},
	{"unable to open state directory", "Create that folder in the volume, or add ?create_dir=true to the backend's URL"},
}

// hinted adds to an error's text what to do about it.
func hinted(text string) string {
	for _, h := range hints {
		if strings.Contains(text, h.text) {
			return text + "\n" + h.hint
		}
	}
	return text
}
