//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAPushIsHeardOf goes by a webhook: the Stack polls once in an hour only. The
// gateway has the receiver's secret from the Secret that is mounted.
func TestAPushIsHeardOf(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.outside()
	program, repository := read(t, "samples/git/Pulumi.yaml"), outsideURL(s.namespace)+"/repository.git"
	first := s.commit("infra/Pulumi.yaml", program)
	s.apply(strings.NewReplacer("REPOSITORY", repository, "shallow: true", "resyncFrequencySeconds: 3600").Replace(read(t, "samples/git/stack.yaml.in")))
	s.awaitCommit("git", first, `"Hello, git!"`)

	s.receiver("hush")
	push := func(secret string) answer {
		return s.send("http://updraft-gateway."+systemNamespace+".svc.cluster.local/webhooks/plain/"+s.namespace,
			map[string]string{"X-Updraft-Token": secret, "Content-Type": "application/json"}, `{"repository":"`+repository+`","ref":"refs/heads/main"}`)
	}
	second := s.commit("infra/Pulumi.yaml", strings.Replace(program, "Hello", "Good morning", 1))
	s.within(patience, "the push is taken", func() error { // a gateway that runs already has a new key after a minute or two
		if got := push("hush"); got.Status != http.StatusAccepted {
			return fmt.Errorf("the answer is %+v", got)
		}
		return nil
	})
	if got := push("wrong"); got.Status != http.StatusUnauthorized {
		t.Errorf("a push with a wrong secret is answered %+v", got)
	}
	s.awaitCommit("git", second, `"Good morning, git!"`)
}

// receiver makes a receiver of webhooks that has the name of the test's namespace.
func (s *space) receiver(secret string) {
	s.Helper()
	const name = "updraft-webhooks"
	secrets := cluster.clients.Core.Secrets(systemNamespace)
	patch := func(ctx context.Context, value string) error {
		_, err := secrets.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"`+s.namespace+`":`+value+`}}`), metav1.PatchOptions{})
		return err
	}
	_, err := secrets.Create(s.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	made := err == nil
	if !made && !apierrors.IsAlreadyExists(err) {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		ctx := context.Background()
		err := patch(ctx, "null")
		if made {
			err = secrets.Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err != nil {
			s.Errorf("Secret %s is left as it is: %v", name, err)
		}
	})
	if err := patch(s.Context(), `"`+base64.StdEncoding.EncodeToString([]byte(secret))+`"`); err != nil {
		s.Fatal(err)
	}
}
