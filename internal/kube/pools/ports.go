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
	snap            *view.Snapshot
	configurationOf func(loadBalancer string) string
}

func (v cluster) Pool(namespace, name string) *v1alpha1.BackendPool {
	return v.snap.Pool(namespace, name)
}

func (v cluster) PoolsOf(service poolschedule.ServiceName) []*v1alpha1.BackendPool {
	return v.snap.PoolsOf(service)
}

func (v cluster) PoolsAt(pool lb.PoolKey) []*v1alpha1.BackendPool { return v.snap.PoolsAt(pool) }

func (v cluster) Target(p *v1alpha1.BackendPool) (lb.PoolID, error) { return v.snap.Target(p) }

func (v cluster) Service(name poolschedule.ServiceName) (backendpool.Service, bool) {
	s := v.snap.Service(name)
	if s == nil {
		return backendpool.Service{}, false
	}
	return backendpool.Service{
		UID: s.UID, Deleting: s.DeletionTimestamp != nil, Type: string(s.Spec.Type), DryRun: view.DryRun(s), HasLoadBalancer: view.HasFinalizer(s),
	}, true
}

func (v cluster) Members(p *v1alpha1.BackendPool) (membership.Set, error) {
	return v.snap.Members(p)
}

func (v cluster) OfThisCluster(ip netip.Addr) bool { return v.snap.OfThisCluster(ip) }

func (v cluster) NodeAt(ip netip.Addr) string { return v.snap.NodeAt(ip) }

func (v cluster) AddressOf(machine string, family lb.Family) (netip.Addr, bool) {
	return v.snap.AddressOf(machine, family)
}

func (v cluster) MachineOf(node string) (nic.Machine, error) { return v.snap.MachineOf(node) }

func (v cluster) ConfigurationOf(p *v1alpha1.BackendPool) string {
	return v.configurationOf(p.Spec.LoadBalancer.Name)
}
