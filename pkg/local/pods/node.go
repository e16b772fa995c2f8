package pods

import (
	"context"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// registerNode makes the Node what it should be: there, ready, without taints,
// and with the port of our listener. It has no heartbeat, as there is no
// controller here that would listen for one.
func (r *Runner) registerNode(ctx context.Context) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := r.node(ctx)
		if err != nil {
			return err
		}
		if len(node.Spec.Taints) > 0 {
			// The API server taints each new node as not ready.
			node.Spec.Taints = nil
			if node, err = r.client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		node.Status = nodeStatus(r.port, time.Now())
		_, err = r.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot register the node: %w", err)
	}
	return nil
}

func (r *Runner) node(ctx context.Context) (*corev1.Node, error) {
	nodes := r.client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, NodeName, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return node, err
	}
	return nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: NodeName,
		Labels: map[string]string{
			corev1.LabelHostname:   NodeName,
			corev1.LabelOSStable:   runtime.GOOS,
			corev1.LabelArchStable: runtime.GOARCH,
		},
	}}, metav1.CreateOptions{})
}

func nodeStatus(port int32, now time.Time) corev1.NodeStatus {
	return corev1.NodeStatus{
		Capacity:    capacity(),
		Allocatable: capacity(),
		Conditions: []corev1.NodeCondition{{
			Type:               corev1.NodeReady,
			Status:             corev1.ConditionTrue,
			Reason:             "LocalProcesses",
			Message:            "Pods run as processes of this machine",
			LastHeartbeatTime:  metav1.NewTime(now),
			LastTransitionTime: metav1.NewTime(now),
		}},
		// No host name: the API server would prefer it, and look it up.
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: loopback}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
		NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem:         runtime.GOOS,
			Architecture:            runtime.GOARCH,
			ContainerRuntimeVersion: "local://1",
		},
	}
}
