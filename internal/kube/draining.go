// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"weir.dev/weir/internal/adminstate"
)

// Drain says since when and why a node is to take no new flows.
type Drain struct {
	// UID is the node's. Another one of its name begins anew.
	UID     types.UID
	Reasons []string
	// Since is when this process saw the first of the taints that have been there ever since.
	Since time.Time
}

// drainingSet are the nodes that drain, by name. The taints in the node cache are the truth;
// the set adds since when.
type drainingSet struct {
	mu    sync.Mutex
	nodes map[string]Drain
}

// Draining returns whether a node is to take no new flows: its addresses are Down while it is
// there. The answer is that of the node cache just now, so who is told of a node's change
// finds it here.
func (c *Cluster) Draining(node string) (Drain, bool) {
	if c.opts.Draining == nil {
		return Drain{}, false
	}
	d := &c.draining
	d.mu.Lock() // before the cache is read: so the last one to write here has read the newest
	defer d.mu.Unlock()
	before, drained := d.nodes[node]
	n := get[corev1.Node](c.snap.nodes, node)
	var reasons []string
	if n != nil {
		reasons = c.opts.Draining.Draining(taintsOf(n.Spec.Taints...))
	}
	if len(reasons) == 0 {
		delete(d.nodes, node)
		if drained {
			c.opts.Log.Info("a node drains no more", "node", node, "gone", n == nil || n.UID != before.UID)
		}
		return Drain{}, false
	}
	now := before
	if !drained || before.UID != n.UID {
		now = Drain{UID: n.UID, Since: time.Now()}
	}
	if !slices.Equal(now.Reasons, reasons) {
		c.opts.Log.Info("a node drains", "node", node, "why", reasons)
	}
	now.Reasons = reasons
	d.nodes[node] = now
	return now, true
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
	c.draining.mu.Lock()
	defer c.draining.mu.Unlock()
	for _, d := range c.draining.nodes {
		for _, reason := range d.Reasons {
			count[reason]++
		}
	}
	return count
}

// watchDraining keeps the set of nodes that drain current, in a process that does not lead as
// well: it knows since when if it comes to lead.
func (c *Cluster) watchDraining(ctx context.Context) error {
	c.draining.nodes = map[string]Drain{}
	nodes, err := c.mgr.GetCache().GetInformer(ctx, &corev1.Node{})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	look := func(obj any) {
		if name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil { // nodes have a name
			c.Draining(name)
		}
	}
	_, err = nodes.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }, DeleteFunc: look,
	})
	return err
}

// taintsOf converts taints.
func taintsOf(taints ...corev1.Taint) []adminstate.Taint {
	all := make([]adminstate.Taint, len(taints))
	for i, t := range taints {
		all[i] = adminstate.Taint{Key: t.Key, Value: t.Value}
	}
	return all
}
