package agent

import (
	"errors"
	"os/exec"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/auto"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

// Oldest versions of the CLI, by what they are needed for.
var (
	// oldestForRuns has "pulumi install".
	oldestForRuns = semver.MustParse("3.91.0")
	// oldestForJSON has "pulumi config set-all --json".
	oldestForJSON = semver.MustParse("3.202.0")
	// oldestForOptions takes the value of any flag from the environment.
	oldestForOptions = semver.MustParse("3.208.0")
)

// findCLI asks the image's CLI for its version. The Automation API's own check
// is left out, since its error is one text for all causes.
func findCLI() (semver.Version, error) {
	found, err := auto.NewPulumiCommand(&auto.PulumiCommandOptions{SkipVersionCheck: true})
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return semver.Version{}, faultf(autov1alpha1.ReasonWorkspaceFailed,
			"The pulumi CLI is not in the image: use an image that holds it, such as pulumi/pulumi:latest-nonroot")
	case err != nil:
		return semver.Version{}, faultf(autov1alpha1.ReasonWorkspaceFailed, "The pulumi CLI of the image does not run: %v", err)
	}
	return found.Version(), nil
}

// gate says whether a CLI can do what a run needs; structured is whether some
// configuration value is no string.
func gate(version semver.Version, structured bool) error {
	switch {
	case version.EQ(semver.Version{}):
		return faultf(autov1alpha1.ReasonPulumiVersionTooLow,
			"The pulumi CLI of the image does not tell its version: use an image with pulumi %s or newer", oldestForRuns)
	case version.LT(oldestForRuns):
		return faultf(autov1alpha1.ReasonPulumiVersionTooLow,
			"The image has pulumi %s, and %s or newer is needed: use an image with a newer CLI", version, oldestForRuns)
	case structured && version.LT(oldestForJSON):
		return faultf(autov1alpha1.ReasonPulumiVersionTooLow,
			"The image has pulumi %s, and configuration values that are no strings need %s or newer: use an image with a newer CLI, or strings",
			version, oldestForJSON)
	}
	return nil
}
