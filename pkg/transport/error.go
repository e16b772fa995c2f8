package transport

import (
	"errors"
	"net/http"
)

// refusal is an error whose HTTP answer is known.
type refusal struct {
	status int
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// Never marks an error that a repeat of the event would meet again: the event
// is answered 422 and is not brought back.
func Never(err error) error { return &refusal{http.StatusUnprocessableEntity, err} }

// Refuse marks an error with the HTTP status to answer.
func Refuse(status int, err error) error { return &refusal{status, err} }

// Status is the HTTP answer to an error: 204 for none, the one it was marked
// with, or 503 for any other, since the world may be well later.
func Status(err error) int {
	if err == nil {
		return http.StatusNoContent
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status
	}
	return http.StatusServiceUnavailable
}
