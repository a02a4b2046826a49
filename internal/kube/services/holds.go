// SPDX-License-Identifier: Apache-2.0

package services

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/kube/ownership"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// holds answers questions about pools of network interfaces and about grants.
type holds struct {
	view *view.Snapshot
	own  *ownership.Pools
}

// AllowedPublicIPs implements balancer.Cluster.
func (h holds) AllowedPublicIPs(namespace string) string { return h.own.AllowedPublicIPs(namespace) }

// Fills implements balancer.Cluster.
func (h holds) Fills(pool lb.PoolID) bool {
	return slices.ContainsFunc(h.view.PoolsAt(pool.Key()), h.own.Made)
}

// Binds implements balancer.Cluster.
func (h holds) Binds(pool lb.PoolID) bool { return len(h.view.PoolsAt(pool.Key())) > 0 }

// Converts implements balancer.Cluster.
func (h holds) Converts(pool lb.PoolID) (is, paused bool) {
	for _, p := range h.view.PoolsAt(pool.Key()) {
		if h.own.Settings.Converts && p.Spec.Nodes != nil && h.own.Made(p) && h.own.ByMachine(p) != h.own.Settings.Interfaces {
			is, paused = true, paused || p.Spec.PausedAt(time.Now())
		}
	}
	return is, paused
}

func (h holds) foreignInterfaces(pool lb.Pool) []string {
	var all []string
	for _, a := range pool.Addresses {
		if a.Machine != "" && len(view.List[corev1.Node](h.view.Nodes, view.NodesByMachine, a.Machine)) > 0 {
			continue
		}
		name := "network interface " + a.Name
		if machine, its, err := lb.MachineOfInterface(a.Interface); err == nil && machine == "" {
			name = "network interface " + its.Name
		} else if of, err := nic.ParseMachine("azure://" + machine); err == nil {
			name = "network interface of " + of.String()
		}
		all = append(all, name)
	}
	return all
}
