package agent

import (
	"errors"
	"fmt"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

// fault is why a run did not succeed.
type fault struct {
	reason  autov1alpha1.ConditionReason
	message string
}

func (f *fault) Error() string { return string(f.reason) + ": " + f.message }

// faultf makes a fault.
func faultf(reason autov1alpha1.ConditionReason, format string, args ...any) *fault {
	return &fault{reason: reason, message: fmt.Sprintf(format, args...)}
}

// faultOf gives the fault that an error is or wraps; any other error is one
// that nobody told apart.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	return &fault{reason: autov1alpha1.ReasonUnknown, message: err.Error()}
}
