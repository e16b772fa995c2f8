package install

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/updraft-dev/updraft/pkg/observe"
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
	c.checkObserved(ctx, f)
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

// checkObserved looks at what is observed. A function that cannot read it says so
// and works, but nobody looks for that.
func (c *cluster) checkObserved(ctx context.Context, f *findings) {
	data := map[string]map[string]string{}
	for _, name := range []string{"config-observability", "config-logging"} {
		there, err := c.client.CoreV1().ConfigMaps(systemNamespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			f.problem("cannot look at ConfigMap %s in %s: %v", name, systemNamespace, err)
			return
		}
		data[name] = there.Data
		for _, key := range slices.Sorted(maps.Keys(there.Data)) {
			if key != "_example" && observe.Unknown(name, key) {
				f.note("the setting %s of ConfigMap %s in %s has no effect", key, name, systemNamespace)
			}
		}
	}
	for _, function := range append([]string{""}, levelled(data["config-logging"])...) {
		if _, err := observe.Parse(data["config-observability"], data["config-logging"], function); err != nil {
			f.problem("what is observed, in ConfigMaps config-observability and config-logging in %s: %v; set it right", systemNamespace, err)
			return
		}
	}
}

// levelled are the functions that have a level of their own.
func levelled(logging map[string]string) []string {
	var names []string
	for key := range logging {
		if name, own := strings.CutPrefix(key, "loglevel."); own {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
