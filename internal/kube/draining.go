// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"weir.dev/weir/internal/adminstate"
)

// Draining returns why a node is to take no new flows: its addresses are Down while it is there. The
// answer is that of the node cache just now.
func (c *Cluster) Draining(node string) (reasons []string) {
	if n := get[corev1.Node](c.snap.nodes, node); n != nil {
		return c.drains(n)
	}
	return nil
}

// drains returns why a node takes no new flows; none if it does, or if taints are left alone.
func (c *Cluster) drains(n *corev1.Node) []string {
	if c.opts.Draining == nil {
		return nil
	}
	return c.opts.Draining.Draining(taintsOf(n.Spec.Taints...))
}

// NodesDraining counts the nodes that drain by reason, those without nodes included. One
// with two reasons counts twice.
func (c *Cluster) NodesDraining() map[string]int {
	count := map[string]int{}
	if c.opts.Draining == nil {
		return count
	}
	for _, reason := range c.opts.Draining.Reasons() {
		count[reason] = 0
	}
	for _, obj := range c.snap.nodes.List() {
		if n, ok := obj.(*corev1.Node); ok {
			for _, reason := range c.drains(n) {
				count[reason]++
			}
		}
	}
	return count
}

// watchDraining logs which nodes begin and end to drain.
func (c *Cluster) watchDraining(ctx context.Context) error {
	nodes, err := c.mgr.GetCache().GetInformer(ctx, &corev1.Node{})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	_, err = nodes.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.logDraining(nil, obj) },
		UpdateFunc: c.logDraining,
		DeleteFunc: func(obj any) { c.logDraining(obj, nil) },
	})
	return err
}

// logDraining logs why a node drains, if that has changed.
func (c *Cluster) logDraining(before, after any) {
	var was, is []string
	name := ""
	if n, ok := before.(*corev1.Node); ok { // a tombstone says no more than that it is gone
		name, was = n.Name, c.drains(n)
	}
	if n, ok := after.(*corev1.Node); ok {
		name, is = n.Name, c.drains(n)
	}
	switch {
	case len(was) > 0 && len(is) == 0:
		c.opts.Log.Info("a node drains no more", "node", name, "gone", after == nil)
	case len(is) > 0 && !slices.Equal(was, is):
		c.opts.Log.Info("a node drains", "node", name, "why", is)
	}
}

// taintsOf converts taints.
func taintsOf(taints ...corev1.Taint) []adminstate.Taint {
	all := make([]adminstate.Taint, len(taints))
	for i, t := range taints {
		all[i] = adminstate.Taint{Key: t.Key, Value: t.Value}
	}
	return all
}
