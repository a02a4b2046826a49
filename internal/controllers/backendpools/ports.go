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

func (v cluster) Pool(namespace, name string) *v1alpha1.BackendPool {
	return v.snapshot.Pool(namespace, name)
}

func (v cluster) PoolsOf(service schedule.ServiceName) []*v1alpha1.BackendPool {
	return v.snapshot.PoolsOf(service)
}

func (v cluster) PoolsAt(pool lb.PoolKey) []*v1alpha1.BackendPool { return v.snapshot.PoolsAt(pool) }

func (v cluster) Target(p *v1alpha1.BackendPool) (lb.PoolID, error) { return v.snapshot.Target(p) }

func (v cluster) Service(name schedule.ServiceName) (backendpool.Service, bool) {
	s := v.snapshot.Service(name)
	if s == nil {
		return backendpool.Service{}, false
	}
	return backendpool.Service{
		UID: s.UID, Deleting: s.DeletionTimestamp != nil, Type: string(s.Spec.Type), DryRun: cache.DryRun(s), HasLoadBalancer: cache.HasFinalizer(s),
	}, true
}

func (v cluster) Members(p *v1alpha1.BackendPool) (membership.Set, error) {
	return v.snapshot.Members(p)
}

func (v cluster) IsNodeAddress(ip netip.Addr) bool { return v.snapshot.IsNodeAddress(ip) }

func (v cluster) UID() string { return v.snapshot.ClusterUID() }

func (v cluster) NodeAt(ip netip.Addr) string { return v.snapshot.NodeAt(ip) }

func (v cluster) AddressOf(machine string, family lb.Family) (netip.Addr, bool) {
	return v.snapshot.AddressOf(machine, family)
}

func (v cluster) MachineOf(node string) (nic.Machine, error) { return v.snapshot.MachineOf(node) }

func (v cluster) ConfigurationOf(p *v1alpha1.BackendPool) string {
	return v.configurationOf(p.Spec.LoadBalancer.Name)
}
