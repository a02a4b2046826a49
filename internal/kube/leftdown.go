// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/api/v1alpha1"
)

// EventLeftDown is the reason of the event on a BackendPool in which addresses are Down that
// nobody takes back.
const EventLeftDown = "AdminStateLeftDown"

// poolsNamed is how many BackendPools the log names.
const poolsNamed = 20

// tellLeftDown says once, if admin states are left alone, where an earlier process has left
// addresses Down: on each such BackendPool, and in one line of the log.
func (c *Cluster) tellLeftDown(ctx context.Context) {
	var left []string
	addresses := 0
	for _, p := range c.sortedPools() {
		if len(p.Status.Down) == 0 {
			continue
		}
		left = append(left, key(p.Namespace, p.Name)+": "+downNames(p.Status.Down))
		addresses += len(p.Status.Down)
		c.events.warn(p, EventLeftDown, "enableNodeAdminState is false, and Weir has left Down: "+downNames(p.Status.Down)+
			". No new flows go there until it is true again, or somebody sets them None in Azure.")
	}
	if len(left) == 0 {
		return
	}
	c.opts.Log.WarnContext(ctx, "enableNodeAdminState is false, and Weir has left addresses Down: no new flows go there until it is true again, or somebody sets them None in Azure",
		"addresses", addresses, "backendPools", len(left), "among", left[:min(len(left), poolsNamed)])
}

// sortedPools are all BackendPools, by name.
func (c *Cluster) sortedPools() []*v1alpha1.BackendPool {
	var all []*v1alpha1.BackendPool
	for _, obj := range c.snap.pools.List() {
		if p, ok := obj.(*v1alpha1.BackendPool); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.BackendPool) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// downNames spells addresses with whose they are.
func downNames(down []v1alpha1.DownAddress) string {
	var names []string
	for _, d := range down[:min(len(down), nodesNamed)] {
		name := d.Address
		if d.Node != "" {
			name = d.Node + " (" + d.Address + ")"
		}
		names = append(names, name)
	}
	text := sentence(strings.Join(names, ", "), maxMessage/2)
	if n := len(down) - nodesNamed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
