package install

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	settingsName = "config-updraft"
	// defaultBrokerURL is where functions send events if the settings do not say.
	defaultBrokerURL = "http://broker-ingress.knative-eventing.svc.cluster.local/updraft-system/updraft"
)

// settings are the keys that have an effect, each with what a value must be.
var settings = map[string]func(string) error{
	"_example":          func(string) error { return nil },
	"default-run-image": func(string) error { return nil },
	"default-timeout":   isDuration,
	"broker-url":        isURL,
	"report-url":        isURL,
	"gateway-audience":  isAudience,
	// The function reads it as Go does.
	"gateway-cluster-tokens": isBool,
}

func isDuration(value string) error {
	if d, err := time.ParseDuration(value); err != nil || d < time.Second {
		return fmt.Errorf("%q is no duration of a second or more, as 90m is", value)
	}
	return nil
}

func isAudience(value string) error {
	if value == "" || strings.ContainsAny(value, " \"\n") {
		return fmt.Errorf("%q is no audience, as updraft-gateway is", value)
	}
	return nil
}

func isBool(value string) error {
	if _, err := strconv.ParseBool(value); err != nil {
		return fmt.Errorf("%q is neither true nor false", value)
	}
	return nil
}

func isURL(value string) error {
	if u, err := url.Parse(value); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%q is no http URL", value)
	}
	return nil
}

// checkSettings looks at the settings of an installation that is there: a function
// does not start with a value that it cannot read.
func (c *cluster) checkSettings(ctx context.Context, f *findings) {
	there, err := c.client.CoreV1().ConfigMaps(systemNamespace).Get(ctx, settingsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		f.problem("cannot look at the settings, ConfigMap %s in %s: %v", settingsName, systemNamespace, err)
		return
	}
	var keys []string
	for key := range there.Data {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		check, known := settings[key]
		if !known {
			f.note("the setting %s of ConfigMap %s in %s has no effect", key, settingsName, systemNamespace)
		} else if err := check(there.Data[key]); err != nil {
			f.problem("the setting %s of ConfigMap %s in %s: %v; set it right", key, settingsName, systemNamespace, err)
		}
	}
}
