package source

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/updraft-dev/updraft/pkg/gitremote"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// credentials reads the Secrets that a poll names. What is missing is a problem,
// unless it may be.
func (f *Function) credentials(ctx context.Context, poll stack.Poll) (found gitremote.Credentials, problem string, err error) {
	if poll.Auth == nil {
		return found, "", nil
	}
	secrets := map[string]*corev1.Secret{}
	for _, part := range []struct {
		from *corev1.SecretKeySelector
		into *string
	}{
		{poll.Auth.Token, &found.Token},
		{poll.Auth.Username, &found.Username},
		{poll.Auth.Password, &found.Password},
	} {
		if part.from == nil {
			continue
		}
		if _, read := secrets[part.from.Name]; !read {
			if secrets[part.from.Name], err = f.secret(ctx, poll.Namespace, part.from.Name); err != nil {
				return found, "", err
			}
		}
		var missing string
		if *part.into, missing = valueOf(secrets[part.from.Name], part.from); missing != "" {
			return found, missing, nil
		}
	}
	return found, "", nil
}

func (f *Function) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret, err := record.Found(f.Clients.Core.Secrets(namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return nil, fmt.Errorf("cannot get Secret %s: %w", name, err)
	}
	return secret, nil
}

func valueOf(secret *corev1.Secret, from *corev1.SecretKeySelector) (value, missing string) {
	optional := from.Optional != nil && *from.Optional
	if secret == nil && !optional {
		return "", fmt.Sprintf("Secret %s does not exist", from.Name)
	}
	if secret == nil {
		return "", ""
	}
	content, ok := secret.Data[from.Key]
	if !ok && !optional {
		return "", fmt.Sprintf("Secret %s has no key %s", from.Name, from.Key)
	}
	return string(content), ""
}
