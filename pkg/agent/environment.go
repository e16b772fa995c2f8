package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// environment is the CLI's environment, as KEY=VALUE; of two with one key the
// later counts.
type environment []string

// lookup gives the value of a variable.
func (e environment) lookup(key string) (string, bool) {
	for _, entry := range slices.Backward(e) {
		if value, found := strings.CutPrefix(entry, key+"="); found {
			return value, true
		}
	}
	return "", false
}

// cliEnvironment is what the CLI runs in: the container's environment, over it
// what init containers left in a file, and below both what the CLI needs in a
// pod and nobody said.
func cliEnvironment(c Config) (environment, error) {
	left, err := readEnvFile(c.EnvFile)
	if err != nil {
		return nil, err
	}
	said := slices.Concat(environment(c.Environ), left)
	env := environment{
		// An arbitrary uid has no entry in passwd, and the CLI wants a name.
		"USER=pulumi",
		"PULUMI_HOME=" + c.path(".pulumi"),
		// The workspace is new for each run, so how a stack's secrets are
		// encrypted is only known from its state.
		"PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER=true",
	}
	for _, entry := range said {
		key, value, _ := strings.Cut(entry, "=")
		if value == "" && (key == "USER" || key == "PULUMI_HOME") {
			continue
		}
		env = append(env, entry)
	}
	return append(env, "PULUMI_SKIP_UPDATE_CHECK=true"), nil
}

// readEnvFile reads the file of variables; one that is not there holds none.
func readEnvFile(path string) (environment, error) {
	if path == "" {
		return nil, nil
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the environment file: %w", err)
	}
	env, err := parseEnv(string(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return env, nil
}

// parseEnv reads lines of KEY=VALUE. Empty lines and comments are skipped, and
// quotes around a whole value are not part of it. Its error never quotes a
// line, which may hold a secret.
func parseEnv(text string) (environment, error) {
	var env environment
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, found := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		key = strings.TrimSpace(key)
		if !found || key == "" || strings.ContainsAny(key, " \t\"'") {
			return nil, fmt.Errorf("line %d is not KEY=VALUE", number+1)
		}
		env = append(env, key+"="+unquote(strings.TrimSpace(value)))
	}
	return env, nil
}

func unquote(s string) string {
	for _, quote := range []string{`"`, `'`} {
		if len(s) >= 2 && strings.HasPrefix(s, quote) && strings.HasSuffix(s, quote) {
			return s[1 : len(s)-1]
		}
	}
	return s
}
