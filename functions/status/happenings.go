package status

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// updateHappening is what kubectl describe says of a settled Update.
func updateHappening(u *autov1alpha1.Update) record.Happening {
	h := record.Happening{
		Name: u.Name + ".settled",
		Object: corev1.ObjectReference{
			APIVersion: autov1alpha1.SchemeGroupVersion.String(), Kind: "Update",
			Namespace: u.Namespace, Name: u.Name, UID: u.UID,
		},
		Type: corev1.EventTypeNormal, Reason: "UpdateSucceeded", Message: fmt.Sprintf("%s succeeded", u.Spec.Type),
	}
	if reason := u.FailedReason(); reason != "" {
		h.Type, h.Reason = corev1.EventTypeWarning, "UpdateFailed"
		h.Message = fmt.Sprintf("%s: %s", reason, said(u))
	}
	return h
}

// stackHappening is what kubectl describe says of the Stack that an Update was
// folded into. The reasons are the reference's.
func stackHappening(s *pulumiv1.Stack, u *autov1alpha1.Update) record.Happening {
	h := record.Happening{
		Name: u.Name + ".folded",
		Object: corev1.ObjectReference{
			APIVersion: pulumiv1.SchemeGroupVersion.String(), Kind: "Stack",
			Namespace: s.Namespace, Name: s.Name, UID: s.UID,
		},
		Type: corev1.EventTypeNormal, Reason: "StackCreated", Message: fmt.Sprintf("Update %s (%s) succeeded", u.Name, u.Spec.Type),
	}
	if reason := u.FailedReason(); reason != "" {
		h.Type, h.Reason = corev1.EventTypeWarning, "StackUpdateFailure"
		h.Message = fmt.Sprintf("Update %s (%s) failed: %s: %s", u.Name, u.Spec.Type, reason, said(u))
	}
	return h
}

// most is how much of what a run said is in an Event, in bytes; the API server takes
// 1024 of a message.
const most = 800

func said(u *autov1alpha1.Update) string { return stack.Paragraph(u.Status.Message, most) }
