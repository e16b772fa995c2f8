package gitremote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/go-git/go-git/v6/plumbing/transport"
	githttp "github.com/go-git/go-git/v6/plumbing/transport/http"
)

// Causes of an error.
var (
	// ErrURL: the URL is not one that is served.
	ErrURL = errors.New("the URL is not valid")
	// ErrRepository: there is no such repository, or not for these credentials.
	ErrRepository = errors.New("repository not found")
	// ErrCredentials: the repository wants other credentials.
	ErrCredentials = errors.New("access denied")
	// ErrRef: the repository has no such branch, tag or commit.
	ErrRef = errors.New("ref not found")
	// ErrUnreachable: the repository cannot be read now.
	ErrUnreachable = errors.New("repository unreachable")
)

// cause is one of the errors above, and a sentence in which % stands for the
// repository.
type cause struct {
	err      error
	sentence string
}

// kind sorts an error of a transport. What it says changes only with the cause:
// an error text of the system has ports and addresses in it.
func kind(err error) cause {
	for _, known := range []struct {
		is error
		cause
	}{
		{transport.ErrEmptyRemoteRepository, cause{ErrRef, "repository % is empty"}},
		{transport.ErrRepositoryNotFound, cause{ErrRepository, "there is no repository %, or it may not be seen without credentials"}},
		{transport.ErrAuthenticationRequired, cause{ErrCredentials, "repository % wants credentials, or others than these"}},
		{transport.ErrAuthorizationFailed, cause{ErrCredentials, "repository % may not be read with these credentials"}},
		{os.ErrPermission, cause{ErrCredentials, "repository % may not be read"}},
		{context.DeadlineExceeded, cause{ErrUnreachable, "repository % did not answer in time"}},
		{os.ErrDeadlineExceeded, cause{ErrUnreachable, "repository % did not answer in time"}},
		{syscall.ECONNREFUSED, cause{ErrUnreachable, "the server of repository % refuses connections"}},
	} {
		if errors.Is(err, known.is) {
			return known.cause
		}
	}
	return cause{ErrUnreachable, unsorted(err)}
}

func unsorted(err error) string {
	var (
		name        *net.DNSError
		status      *githttp.Err
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		network     net.Error
	)
	switch {
	case errors.As(err, &name):
		return "the host of repository % is not known"
	case errors.As(err, &certificate), errors.As(err, &authority):
		return "the certificate of the server of repository % is not valid"
	case errors.As(err, &status) && status.Status >= 500:
		return "the server of repository % failed"
	case errors.As(err, &status):
		return "the server of repository % refused the request"
	case errors.As(err, &network) && network.Timeout():
		return "repository % did not answer in time"
	default:
		return "repository % cannot be read"
	}
}
