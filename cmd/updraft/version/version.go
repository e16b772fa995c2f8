// Package version is updraft version: what this program is, and on what it is tested.
package version

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/updraft-dev/updraft/cmd/internal/tested"
)

// number is the version, if the linker was told one: make build VERSION=….
var number string

// Command is updraft version.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is, and on what it is tested",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), Text())
			return err
		},
	}
}

// Text is some lines for a person, the version first.
func Text() string {
	info, _ := debug.ReadBuildInfo()
	return text(number, info)
}

func text(number string, info *debug.BuildInfo) string {
	commit, state := "", ""
	if info != nil {
		if number == "" || number == "devel" {
			number = strings.Trim(info.Main.Version, "()")
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				state = ", with changes"
			}
		}
	}
	if number == "" {
		number = "devel"
	}
	lines := "updraft " + number + "\n"
	if commit != "" {
		lines += "commit " + commit + state + "\n"
	}
	return lines + fmt.Sprintf("tested on Kubernetes %s, Knative %s, Pulumi %s\n", tested.Kubernetes, tested.Knative, tested.Pulumi)
}
