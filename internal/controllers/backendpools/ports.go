// SPDX-License-Identifier: Apache-2.0

package backendpools

import (
	"net/netip"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

type cluster struct {
	snapshot        *cache.Snapshot
	configurationOf func(loadBalancer string) string
}

func (c cluster) Pool(namespace, name string) *v1alpha1.BackendPool {
	return c.snapshot.Pool(namespace, name)
}

func (c cluster) PoolsOf(service schedule.ServiceName) []*v1alpha1.BackendPool {
	return c.snapshot.PoolsOf(service)
}

func (c cluster) PoolsAt(pool lb.PoolKey) []*v1alpha1.BackendPool { return c.snapshot.PoolsAt(pool) }

func (c cluster) Target(p *v1alpha1.BackendPool) (lb.PoolID, error) { return c.snapshot.Target(p) }

func (c cluster) Service(name schedule.ServiceName) (backendpool.Service, bool) {
	s := c.snapshot.Service(name)
	if s == nil {
		return backendpool.Service{}, false
	}
	return backendpool.Service{
		UID: s.UID, Deleting: s.DeletionTimestamp != nil, Type: string(s.Spec.Type), DryRun: cache.DryRun(s), HasLoadBalancer: cache.HasFinalizer(s),
	}, true
}

func (c cluster) Members(p *v1alpha1.BackendPool) (membership.Set, error) {
	return c.snapshot.Members(p)
}

func (c cluster) IsNodeAddress(ip netip.Addr) bool { return c.snapshot.IsNodeAddress(ip) }

func (c cluster) UID() string { return c.snapshot.ClusterUID() }

func (c cluster) NodeAt(ip netip.Addr) string { return c.snapshot.NodeAt(ip) }

func (c cluster) AddressOf(machine string, family lb.Family) (netip.Addr, bool) {
	return c.snapshot.AddressOf(machine, family)
}

func (c cluster) MachineOf(node string) (nic.Machine, error) { return c.snapshot.MachineOf(node) }

func (c cluster) ConfigurationOf(p *v1alpha1.BackendPool) string {
	return c.configurationOf(p.Spec.LoadBalancer.Name)
}
