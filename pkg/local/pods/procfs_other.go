//go:build !linux

package pods

import (
	"errors"
	"os"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// supported keeps a Runner from being made where there is no /proc and no
// subreaper, so that the rest of this file is only there to be compiled.
const supported = false

// Supervise does nothing here.
func Supervise([]string) int { return 1 }

func detached() *syscall.SysProcAttr { return nil }

func killMarked(string) {}

func capacity() corev1.ResourceList { return nil }

func lockFolder(string) (*os.File, error) { return nil, errors.ErrUnsupported }
