package pods

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// namespaced reads the objects of one namespace, and each at most once, so that
// one container does not get two states of a Secret.
type namespaced struct {
	ctx        context.Context //nolint:containedctx // the life of the pod, which all its reads share
	client     corev1client.CoreV1Interface
	namespace  string
	secrets    map[string]*corev1.Secret
	configMaps map[string]*corev1.ConfigMap
}

func (s *sandbox) objects() objects {
	return &namespaced{
		ctx:        s.alive,
		client:     s.r.client.CoreV1(),
		namespace:  s.current().Namespace,
		secrets:    map[string]*corev1.Secret{},
		configMaps: map[string]*corev1.ConfigMap{},
	}
}

func (n *namespaced) secret(name string) (*corev1.Secret, error) {
	if secret, ok := n.secrets[name]; ok {
		return secret, nil
	}
	secret, err := n.client.Secrets(n.namespace).Get(n.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	n.secrets[name] = secret
	return secret, nil
}

func (n *namespaced) configMap(name string) (*corev1.ConfigMap, error) {
	if configMap, ok := n.configMaps[name]; ok {
		return configMap, nil
	}
	configMap, err := n.client.ConfigMaps(n.namespace).Get(n.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	n.configMaps[name] = configMap
	return configMap, nil
}

func (n *namespaced) claim(name string) error {
	_, err := n.client.PersistentVolumeClaims(n.namespace).Get(n.ctx, name, metav1.GetOptions{})
	return err
}
