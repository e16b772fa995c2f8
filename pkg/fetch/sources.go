package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"sigs.k8s.io/yaml"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/run"
)

// program copies the Program's Pulumi.yaml out of the run's ConfigMap. It is a
// copy because a ConfigMap's mount is read-only and the CLI writes beside it.
func program(p autov1alpha1.ProgramSource) bring {
	return func(_ context.Context, root string) (brought, error) {
		content, err := os.ReadFile(filepath.Join(root, run.SpecFolder, run.ProgramFile))
		if err != nil {
			return brought{}, fmt.Errorf("cannot read Program %s: %w", p.Name, err)
		}
		got := brought{folder: run.SourceFolder}
		if p.Generation > 0 {
			got.revision = strconv.FormatInt(p.Generation, 10)
		}
		return got, writeProject(root, content)
	}
}

// projectInfo writes a Pulumi.yaml of a name and a runtime.
func projectInfo(p autov1alpha1.ProjectInfo) bring {
	return func(_ context.Context, root string) (brought, error) {
		if p.Name == "" || p.Runtime == "" {
			return brought{}, errors.New("projectInfo needs a name and a runtime")
		}
		content, err := yaml.Marshal(p)
		if err != nil {
			return brought{}, fmt.Errorf("cannot encode projectInfo: %w", err)
		}
		return brought{folder: run.SourceFolder}, writeProject(root, content)
	}
}

// local uses a folder where it is. It may be of the user's image, which is not
// seen here, so whether it exists is found out by the run.
func local(l autov1alpha1.LocalSource) bring {
	return func(context.Context, string) (brought, error) {
		if l.Dir == "" {
			return brought{}, errors.New("the source local names no dir")
		}
		return brought{folder: l.Dir}, nil
	}
}

// writeProject makes the source folder with a Pulumi.yaml in it.
func writeProject(root string, content []byte) error {
	folder := filepath.Join(root, run.SourceFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("cannot make the source folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, run.ProgramFile), content, 0o644); err != nil {
		return fmt.Errorf("cannot write Pulumi.yaml: %w", err)
	}
	return nil
}
