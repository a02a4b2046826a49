// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/netip"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
)

// connectPools makes the Controller of BackendPools, with the cluster as its ports. It gets its
// lanes in Setup.
func (c *Cluster) connectPools(api backendpool.API) {
	c.statuses = backendpool.NewStatuses(api)
	c.pools = backendpool.New(backendpool.Config{
		Cluster: poolCluster{c.snap}, Owner: poolOwner{c}, Events: poolEvents{c}, Queue: c.wake.add, Log: c.opts.Log,
		RecheckAfter: c.opts.RecheckAfter, ReleaseAgainAfter: c.opts.ReleaseAgainAfter,
	}, c.statuses)
	c.snap.taken, c.snap.made, c.snap.right = c.statuses.Taken, c.made, c.rightOf
}

// BackendPools decides what becomes of BackendPools. It implements poolupdate's Cluster, Ledger
// and Reporter.
func (c *Cluster) BackendPools() *backendpool.Controller { return c.pools }

// poolCluster implements backendpool.Cluster.
type poolCluster struct{ snap *snapshot }

func (v poolCluster) Pool(namespace, name string) *v1alpha1.BackendPool {
	return v.snap.poolNamed(namespace, name)
}

func (v poolCluster) PoolsOf(service poolupdate.ServiceName) []*v1alpha1.BackendPool {
	return v.snap.poolsOf(service)
}

func (v poolCluster) PoolsAt(pool lb.PoolKey) []*v1alpha1.BackendPool { return v.snap.poolsAt(pool) }

func (v poolCluster) Target(p *v1alpha1.BackendPool) (lb.PoolID, error) { return v.snap.place.of(p) }

func (v poolCluster) Service(name poolupdate.ServiceName) (backendpool.Service, bool) {
	s := v.snap.service(name)
	if s == nil {
		return backendpool.Service{}, false
	}
	return backendpool.Service{
		UID: s.UID, Deleting: s.DeletionTimestamp != nil, Type: string(s.Spec.Type), DryRun: dryRun(s), HasLoadBalancer: bound(s),
	}, true
}

func (v poolCluster) Members(p *v1alpha1.BackendPool) (membership.Set, error) {
	return v.snap.members(p)
}

func (v poolCluster) OfThisCluster(ip netip.Addr) bool { return v.snap.ofThisCluster(ip) }

func (v poolCluster) AddressOf(machine string, family lb.Family) (netip.Addr, bool) {
	return v.snap.addressOf(machine, family)
}

// poolOwner implements backendpool.Owner.
type poolOwner struct{ c *Cluster }

func (o poolOwner) Right(p *v1alpha1.BackendPool, at lb.PoolID) (backendpool.Right, backendpool.Refusal) {
	return o.c.snap.right(p, at)
}

func (o poolOwner) Made(p *v1alpha1.BackendPool) bool { return o.c.snap.made(p) }

func (o poolOwner) MadeFor(p *v1alpha1.BackendPool) string { return o.c.madeFor(p) }

func (o poolOwner) Needed(p *v1alpha1.BackendPool) bool { return o.c.needed(p) }

func (o poolOwner) Goes(p *v1alpha1.BackendPool) { o.c.leaveFor(p) }

func (o poolOwner) Missing(p *v1alpha1.BackendPool) { o.c.missing(p) }

func (o poolOwner) Filled(p *v1alpha1.BackendPool, r poolupdate.Report) { o.c.filled(p, r) }

// poolEvents implements backendpool.Events.
type poolEvents struct{ c *Cluster }

func (e poolEvents) OnPool(p *v1alpha1.BackendPool, event backendpool.Event) {
	e.c.events.add(p, event.Kind, event.Reason, event.Text)
}

func (e poolEvents) OnService(name poolupdate.ServiceName, event backendpool.Event) {
	if s := e.c.snap.service(name); s != nil {
		e.c.events.add(s, event.Kind, event.Reason, event.Text)
	}
}

func (e poolEvents) Spares(p *v1alpha1.BackendPool, is backendpool.Entitlement, set membership.Set) {
	e.c.tellSpared(p, is, set)
}

func (e poolEvents) AdminStates(p *v1alpha1.BackendPool, is backendpool.Entitlement, r poolupdate.Report, t backendpool.Turned) {
	if e.c.news != nil {
		e.c.news.hear(aboutPool(p, is), r, t)
	}
}
