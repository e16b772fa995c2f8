package source

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestValueOf(t *testing.T) {
	yes := true
	secret := &corev1.Secret{Data: map[string][]byte{"token": []byte("hush")}}
	from := func(key string, optional *bool) *corev1.SecretKeySelector {
		return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "git"}, Key: key, Optional: optional}
	}
	cases := map[string]struct {
		secret         *corev1.Secret
		from           *corev1.SecretKeySelector
		value, missing string
	}{
		"A key":                                {secret, from("token", nil), "hush", ""},
		"A key that is missing":                {secret, from("password", nil), "", "Secret git has no key password"},
		"A key that may be missing":            {secret, from("password", &yes), "", ""},
		"A Secret that does not exist":         {nil, from("token", nil), "", "Secret git does not exist"},
		"A Secret that does not have to exist": {nil, from("token", &yes), "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			value, missing := valueOf(c.secret, c.from)
			if value != c.value || missing != c.missing {
				t.Errorf("valueOf() = %q, %q, want %q, %q", value, missing, c.value, c.missing)
			}
		})
	}
}
