package record

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// Found turns a GET of what may not be there into the object or nil.
func Found[T any](object *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

// Gone forgives the absence of what was to be deleted, or its being another
// object of the same name by now.
func Gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Made forgives that what was to be made is there.
func Made(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Closed says whether a namespace is being deleted and takes nothing new: what
// only helps, an Event, an alarm, is not made there, and what is there must be let
// go without it.
func Closed(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }

// Only deletes this very object, and not another of the same name; what it owns
// goes after it.
func Only(object metav1.Object) metav1.DeleteOptions {
	uid, background := object.GetUID(), metav1.DeletePropagationBackground
	return metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &background,
	}
}

// HasFinalizer says whether our finalizer is on the object.
func HasFinalizer(object metav1.Object) bool {
	return slices.Contains(object.GetFinalizers(), pulumiv1.Finalizer)
}

// AddFinalizer puts our finalizer onto the object.
func AddFinalizer(object metav1.Object) {
	if !HasFinalizer(object) {
		object.SetFinalizers(append(object.GetFinalizers(), pulumiv1.Finalizer))
	}
}

// RemoveFinalizer takes our finalizer off the object.
func RemoveFinalizer(object metav1.Object) {
	var kept []string
	for _, f := range object.GetFinalizers() {
		if f != pulumiv1.Finalizer {
			kept = append(kept, f)
		}
	}
	object.SetFinalizers(kept)
}

// Refused is the API server's word on a write that is not valid, which a repeat
// would meet again; "" for any other answer.
func Refused(err error) string {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return err.Error()
	}
	return ""
}
