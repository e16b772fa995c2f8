package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
)

// host is one kind of sender: how it proves who it is, and what it sends.
type host struct {
	// verify says whether a request proves that it has the secret.
	verify func(secret []byte, header http.Header, body []byte) bool
	// parse reads what was pushed. It is none for an event that is no push.
	parse func(header http.Header, body []byte) ([]push, error)
}

// push is what of a payload counts.
type push struct {
	// repositories are the spellings of the one repository.
	repositories []string
	// ref in full; "" if it is not told.
	ref string
}

// hosts by their kind in the path.
var hosts = map[string]host{
	"github":    {verify: signed("X-Hub-Signature-256"), parse: github},
	"gitlab":    {verify: token("X-Gitlab-Token"), parse: gitlab},
	"gitea":     {verify: signed("X-Gitea-Signature", "X-Forgejo-Signature", "X-Hub-Signature-256"), parse: gitea},
	"forgejo":   {verify: signed("X-Forgejo-Signature", "X-Gitea-Signature", "X-Hub-Signature-256"), parse: gitea},
	"bitbucket": {verify: signed("X-Hub-Signature"), parse: bitbucket},
	"plain":     {verify: token("X-Updraft-Token"), parse: plain},
}

// signed verifies a body's HMAC by SHA-256, in hex, in the first of the headers
// that is there.
func signed(headers ...string) func([]byte, http.Header, []byte) bool {
	return func(secret []byte, header http.Header, body []byte) bool {
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		given := ""
		for _, name := range headers {
			if given = header.Get(name); given != "" {
				break
			}
		}
		decoded, err := hex.DecodeString(strings.TrimPrefix(given, "sha256="))
		return hmac.Equal(mac.Sum(nil), decoded) && err == nil
	}
}

// token verifies the secret itself in a header. The hashes are compared, so that
// not even its length is told by how long it takes.
func token(name string) func([]byte, http.Header, []byte) bool {
	return func(secret []byte, header http.Header, _ []byte) bool {
		given, wanted := sha256.Sum256([]byte(header.Get(name))), sha256.Sum256(secret)
		return subtle.ConstantTimeCompare(given[:], wanted[:]) == 1
	}
}

// nobodys is a secret that nobody has: what is sent to a receiver that does not
// exist is verified against it.
func nobodys() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	return secret
}
