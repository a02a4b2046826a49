// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/lb"
)

// Draining determines which nodes drain: they take no new flows, and their addresses are Down.
type Draining struct {
	Nodes *cache.Snapshot
	// Signals define draining; nil ignores taints and conditions.
	Signals *lb.DrainSignals
	Log     *slog.Logger
}

// Reasons returns why a node drains according to the cache; nil if it does not.
func (d Draining) Reasons(node string) (reasons []string) {
	if n := cache.Get[corev1.Node](d.Nodes.Nodes, node); n != nil {
		return d.reasonsOf(n)
	}
	return nil
}

// reasonsOf returns why a node drains; nil if it does not, or without Signals.
func (d Draining) reasonsOf(n *corev1.Node) []string {
	if d.Signals == nil {
		return nil
	}
	return d.Signals.DrainReasons(cache.StateOf(n))
}

// CountByReason returns the number of draining nodes by reason, including zeros of taints and conditions. A node with two reasons
// counts twice.
func (d Draining) CountByReason() map[string]int {
	count := map[string]int{}
	if d.Signals == nil {
		return count
	}
	for _, reason := range d.Signals.AllReasons() {
		count[reason] = 0
	}
	for _, obj := range d.Nodes.Nodes.List() {
		if n, ok := obj.(*corev1.Node); ok {
			for _, reason := range d.reasonsOf(n) {
				count[reason]++
			}
		}
	}
	return count
}

// WatchNodes logs the start and end of drains.
func (d Draining) WatchNodes(ctx context.Context, informers ctrlcache.Informers) error {
	nodes, err := informers.GetInformer(ctx, &corev1.Node{})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	_, err = nodes.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { d.logChange(nil, obj) },
		UpdateFunc: d.logChange,
		DeleteFunc: func(obj any) { d.logChange(obj, nil) },
	})
	return err
}

func (d Draining) logChange(before, after any) {
	var oldReasons, newReasons []string
	name := ""
	if n, ok := before.(*corev1.Node); ok { // a tombstone only means deleted
		name, oldReasons = n.Name, d.reasonsOf(n)
	}
	if n, ok := after.(*corev1.Node); ok {
		name, newReasons = n.Name, d.reasonsOf(n)
	}
	switch {
	case len(oldReasons) > 0 && len(newReasons) == 0:
		d.Log.Info("a node drains no more", "node", name, "gone", after == nil)
	case len(newReasons) > 0 && !slices.Equal(oldReasons, newReasons):
		d.Log.Info("a node drains", "node", name, "why", newReasons)
	}
}
