// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// maxNodes keeps node addresses inside 10.224.0.0/16; Azure reserves the first four of a subnet.
const maxNodes = 5000

// createNodes creates the missing nodes of node-1 to node-<count> and returns when all are schedulable.
func createNodes(ctx context.Context, config *rest.Config, count int, dualStack bool) error {
	client, err := kubernetes.NewForConfig(withoutRateLimits(config, "kubelab-nodes"))
	if err != nil {
		return err
	}
	nodes := client.CoreV1().Nodes()
	for i := 1; i <= count; i++ {
		node := newNode(i, dualStack)
		if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
	}
	for i := 1; i <= count; i++ {
		name := newNode(i, dualStack).Name
		err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			node, err := nodes.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			ready, taints := desiredNode(node)
			return nodeReady(node) == ready && sameTaints(taints, node.Spec.Taints), nil
		})
		if err != nil {
			return fmt.Errorf("node %s does not become ready: %w", name, err)
		}
	}
	return nil
}

// newNode returns the i-th node, counted from 1, with InternalIP 10.224.0.3 + i and fd00:10:224:: + i + 3.
func newNode(i int, dualStack bool) *corev1.Node {
	name := fmt.Sprintf("node-%d", i)
	host := i + 3
	high, low := byte(host>>8), byte(host)
	addresses := []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: name},
		{Type: corev1.NodeInternalIP, Address: netip.AddrFrom4([4]byte{10, 224, high, low}).String()},
	}
	if dualStack {
		ipv6 := netip.AddrFrom16([16]byte{0xfd, 0, 0, 0x10, 0x02, 0x24, 14: high, 15: low})
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ipv6.String()})
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:   name,
			corev1.LabelOSStable:   "linux",
			corev1.LabelArchStable: "amd64",
		}},
		Status: corev1.NodeStatus{Addresses: addresses},
	}
}
