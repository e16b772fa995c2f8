package install

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// install applies the manifests. Each run of one kind is ready before the next is
// applied: what comes later needs what came before.
func (c *cluster) install(ctx context.Context, objects []*unstructured.Unstructured, despite bool) error {
	found := c.preflight(ctx, objects)
	if err := found.report(c.screen); err != nil && (!despite || found.operator) {
		return err
	}
	for _, run := range runs(objects) {
		if err := c.put(ctx, run); err != nil {
			return err
		}
		if run[0].GetKind() == "Broker" {
			if err := c.compareBrokerURL(ctx, run[0]); err != nil {
				return err
			}
		}
	}
	if err := c.prune(ctx, objects); err != nil {
		return err
	}
	c.screen.say("Updraft is installed. Try it: kubectl apply -f samples/hello")
	return nil
}

// put applies a run and waits until it is ready.
func (c *cluster) put(ctx context.Context, run []*unstructured.Unstructured) error {
	began := time.Now()
	for _, o := range run {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[partOf] = "updraft" // what prune and uninstall know their own by
		o.SetLabels(labels)
		if err := c.apply(ctx, o); err != nil {
			return err
		}
	}
	if conditionOf(run[0]) == "" {
		c.screen.say("%s applied", list(run))
		return nil
	}
	if err := c.awaitReady(ctx, run); err != nil {
		return err
	}
	if run[0].GetKind() == "CustomResourceDefinition" {
		c.mapper.Reset()
	}
	c.screen.say("%s ready after %.1f s", list(run), time.Since(began).Seconds())
	return nil
}

// compareBrokerURL says so if functions would send to where the Broker is not:
// the address depends on the Broker's class.
func (c *cluster) compareBrokerURL(ctx context.Context, broker *unstructured.Unstructured) error {
	resource, err := c.resource(broker)
	if err != nil {
		return err
	}
	now, err := resource.Get(ctx, broker.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot get %s: %w", title(broker), err)
	}
	address, _, _ := unstructured.NestedString(now.Object, "status", "address", "url")
	settings, err := c.client.CoreV1().ConfigMaps(systemNamespace).Get(ctx, settingsName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot get the settings: %w", err)
	}
	configured, set := settings.Data["broker-url"]
	if !set {
		configured = defaultBrokerURL
	}
	if address != configured {
		return fmt.Errorf("the Broker is at %s, and the functions would send to %s; set it, then install again: "+
			`kubectl patch configmap config-updraft -n %s --type merge -p '{"data":{"broker-url":"%s"}}'`, address, configured, systemNamespace, address)
	}
	return nil
}
