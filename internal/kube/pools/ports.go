// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"net/netip"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/poolschedule"
)

type cluster struct {
	snapshot        *view.Snapshot
	configurationOf func(loadBalancer string) string
}

func (v cluster) Pool(namespace, name string) *v1alpha1.BackendPool {
	return v.snapshot.Pool(namespace, name)
}

func (v cluster) PoolsOf(service poolschedule.ServiceName) []*v1alpha1.BackendPool {
	return v.snapshot.PoolsOf(service)
}

func (v cluster) PoolsAt(pool lb.PoolKey) []*v1alpha1.BackendPool { return v.snapshot.PoolsAt(pool) }

func (v cluster) Target(p *v1alpha1.BackendPool) (lb.PoolID, error) { return v.snapshot.Target(p) }

func (v cluster) Service(name poolschedule.ServiceName) (backendpool.Service, bool) {
	s := v.snapshot.Service(name)
	if s == nil {
		return backendpool.Service{}, false
	}
	return backendpool.Service{
		UID: s.UID, Deleting: s.DeletionTimestamp != nil, Type: string(s.Spec.Type), DryRun: view.DryRun(s), HasLoadBalancer: view.HasFinalizer(s),
	}, true
}

func (v cluster) Members(p *v1alpha1.BackendPool) (membership.Set, error) {
	return v.snapshot.Members(p)
}

func (v cluster) IsNodeAddress(ip netip.Addr) bool { return v.snapshot.IsNodeAddress(ip) }

func (v cluster) NodeAt(ip netip.Addr) string { return v.snapshot.NodeAt(ip) }

func (v cluster) AddressOf(machine string, family lb.Family) (netip.Addr, bool) {
	return v.snapshot.AddressOf(machine, family)
}

func (v cluster) MachineOf(node string) (nic.Machine, error) { return v.snapshot.MachineOf(node) }

func (v cluster) ConfigurationOf(p *v1alpha1.BackendPool) string {
	return v.configurationOf(p.Spec.LoadBalancer.Name)
}
