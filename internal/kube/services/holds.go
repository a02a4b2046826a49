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
	view      *view.Snapshot
	ownership *ownership.Pools
}

// AllowedPublicIPs implements balancer.Cluster.
func (h holds) AllowedPublicIPs(namespace string) string {
	return h.ownership.AllowedPublicIPs(namespace)
}

// HasManagedPool implements balancer.Cluster.
func (h holds) HasManagedPool(pool lb.PoolID) bool {
	return slices.ContainsFunc(h.view.PoolsAt(pool.Key()), h.ownership.IsManaged)
}

// HasBackendPool implements balancer.Cluster.
func (h holds) HasBackendPool(pool lb.PoolID) bool { return len(h.view.PoolsAt(pool.Key())) > 0 }

// ConversionState implements balancer.Cluster.
func (h holds) ConversionState(pool lb.PoolID) (is, paused bool) {
	for _, p := range h.view.PoolsAt(pool.Key()) {
		if h.ownership.Settings.ConvertsPools && p.Spec.Nodes != nil && h.ownership.IsManaged(p) && h.ownership.UsesInterfaces(p) != h.ownership.Settings.Interfaces {
			is, paused = true, paused || p.Spec.IsPausedAt(time.Now())
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
