// SPDX-License-Identifier: Apache-2.0

package services

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/ownership"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/service"
)

// holds answers questions about pools of network interfaces and about grants.
type holds struct {
	view      *cache.Snapshot
	ownership *ownership.Pools
}

// AllowedPublicIPs implements loadbalancer.Cluster.
func (h holds) AllowedPublicIPs(namespace string) string {
	return h.ownership.AllowedPublicIPs(namespace)
}

// HasManagedPool implements loadbalancer.Cluster.
func (h holds) HasManagedPool(pool lb.PoolID) bool {
	return slices.ContainsFunc(h.view.PoolsAt(pool.Key()), h.ownership.IsCreatedByWeir)
}

// HasBackendPool implements loadbalancer.Cluster.
func (h holds) HasBackendPool(pool lb.PoolID) bool { return len(h.view.PoolsAt(pool.Key())) > 0 }

// ConversionState implements loadbalancer.Cluster.
func (h holds) ConversionState(pool lb.PoolID) (converting, paused bool) {
	for _, p := range h.view.PoolsAt(pool.Key()) {
		if h.ownership.Settings.ConvertsPools && p.Spec.Nodes != nil && h.ownership.IsCreatedByWeir(p) && h.ownership.UsesInterfaces(p) != h.ownership.Settings.Interfaces {
			converting, paused = true, paused || p.Spec.IsPausedAt(time.Now())
		}
	}
	return converting, paused
}

// MemberKind implements loadbalancer.Cluster.
func (h holds) MemberKind(pool lb.PoolID) service.MemberKind {
	for _, p := range h.view.PoolsAt(pool.Key()) {
		switch {
		case p.Spec.Nodes == nil || p.DeletionTimestamp != nil || !h.ownership.IsCreatedByWeir(p):
		case h.ownership.UsesInterfaces(p):
			return service.InterfaceMembers
		default:
			return service.AddressMembers
		}
	}
	return service.UnknownMembers
}

func (h holds) foreignInterfaces(pool lb.Pool) []string {
	var interfaces []string
	for _, a := range pool.Addresses {
		if a.Machine != "" && len(cache.List[corev1.Node](h.view.Nodes, cache.NodesByMachine, a.Machine)) > 0 {
			continue
		}
		name := "network interface " + a.Name
		if machine, id, err := lb.MachineOfInterface(a.Interface); err == nil && machine == "" {
			name = "network interface " + id.Name
		} else if of, err := nic.ParseMachine("azure://" + machine); err == nil {
			name = "network interface of " + of.String()
		}
		interfaces = append(interfaces, name)
	}
	return interfaces
}
