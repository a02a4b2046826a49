// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

// Pools are the BackendPools; see backendpool.Controller.
type Pools interface {
	ResolveBinding(p *v1alpha1.BackendPool, now time.Time) backendpool.Binding
	PoolOwner(pool lb.PoolID) *v1alpha1.BackendPool
	IsShown(p *v1alpha1.BackendPool, ip netip.Addr) bool
	IsContested(p *v1alpha1.BackendPool) bool
	HasStartTimedOut(p *v1alpha1.BackendPool, ip netip.Addr, now time.Time) bool
}

// Rules are the rules of Services; see ownership.Pools.
type Rules interface {
	RulePools(s *corev1.Service) (pools []lb.PoolID, known bool)
	HasServingProbes(s *corev1.Service) (serving, valid bool)
}

// inputs collects the inputs of decisions.
type inputs struct {
	view  *cache.Snapshot
	pools Pools
	rules Rules
}

// services returns the Services of Weir that select a pod, and the BackendPools of their pools.
func (in inputs) services(pod *corev1.Pod, now time.Time) (items []Service, refs []schedule.Ref) {
	for _, s := range in.view.ServicesSelecting(pod.Namespace, pod.Labels) {
		bound := in.view.PoolsOf(schedule.ServiceName{Namespace: s.Namespace, Name: s.Name})
		managed := in.view.Serving.IsManaged(s)
		if s.DeletionTimestamp != nil || !managed && len(bound) == 0 {
			continue
		}
		svc := Service{Name: s.Name, IsLocal: s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal}
		if managed {
			in.addRules(&svc, s, &bound, now)
		} else { // the rules are another controller's, and the probes unknown
			svc.HasAddress, svc.IsKnown = true, true
		}
		for _, p := range bound {
			if p.DeletionTimestamp == nil {
				svc.Pools, refs = append(svc.Pools, in.pool(p, pod.Spec.NodeName, now)), append(refs, backendpool.RefOf(p))
			}
		}
		items = append(items, svc)
	}
	return items, refs
}

// addRules adds what is known of the rules of a Service, and the owners of their pools to bound.
func (in inputs) addRules(svc *Service, s *corev1.Service, bound *[]*v1alpha1.BackendPool, now time.Time) {
	var valid bool
	svc.HasProbes, valid = in.rules.HasServingProbes(s)
	svc.HasAddress = len(s.Status.LoadBalancer.Ingress) > 0
	switch {
	case cache.DryRun(s):
		svc.Blocked = DryRun
	case !valid || meta.IsStatusConditionFalse(s.Status.Conditions, cache.ConditionAccepted):
		svc.Blocked = Rejected
	case meta.IsStatusConditionTrue(s.Status.Conditions, metadata.ConditionConflict):
		svc.Blocked = Contested
	}
	var pools []lb.PoolID
	pools, svc.IsKnown = in.rules.RulePools(s)
	for _, at := range pools {
		switch owner := in.pools.PoolOwner(at); {
		case owner == nil && in.isPending(at, now):
			svc.Pools = append(svc.Pools, Pool{Name: at.Name, JoinsEarly: true})
		case owner == nil:
			svc.Pools = append(svc.Pools, Pool{Name: at.Name, Blocked: Foreign})
		case !slices.Contains(*bound, owner):
			*bound = append(*bound, owner)
		}
	}
}

// isPending reports whether a pool without an owner may still get one: the cache has no BackendPool for it yet, or does not
// show yet whether that may use it.
func (in inputs) isPending(at lb.PoolID, now time.Time) bool {
	pools := in.view.PoolsAt(at.Key())
	return len(pools) == 0 || slices.ContainsFunc(pools, func(p *v1alpha1.BackendPool) bool { return isPending(in.pools.ResolveBinding(p, now)) })
}

func isPending(b backendpool.Binding) bool { return b.Reason == v1alpha1.ReasonPending }

// pool returns what is known of a node in a pool.
func (in inputs) pool(p *v1alpha1.BackendPool, node string, now time.Time) Pool {
	pool := Pool{Name: p.Spec.PoolName}
	binding := in.pools.ResolveBinding(p, now)
	switch {
	case binding.State == backendpool.Paused:
		pool.Blocked = Paused
	case binding.State == backendpool.DryRun:
		pool.Blocked = DryRun
	case isPending(binding):
	case !binding.AllowsUpdates() || binding.RemovesMembers():
		pool.Blocked = Foreign
	case in.pools.IsContested(p):
		pool.Blocked = Contested
	}
	set, err := in.view.MemberOn(p, node)
	pool.JoinsEarly = err == nil && set.EarlyJoin != membership.JoinWhenReady
	members := set.Addresses
	if pool.JoinsEarly {
		members = slices.Concat(members, set.Starting)
	}
	at := slices.IndexFunc(members, func(a lb.Address) bool { return a.Name == node })
	if err != nil {
		return pool
	}
	if at < 0 {
		alone, known := in.view.MemberAlone(p, node)
		pool.JoinsEarly = !known && p.Spec.Nodes != nil || pool.JoinsEarly && (!known || alone.IP.IsValid())
		pool.IsDown = alone.AdminState == lb.Down
		return pool
	}
	member := members[at]
	if at >= len(set.Addresses) && in.pools.HasStartTimedOut(p, member.IP, now) {
		pool.JoinsEarly = false
		return pool
	}
	pool.IsDesired, pool.IsDown = true, member.AdminState == lb.Down
	pool.IsMember = in.pools.IsShown(p, member.IP)
	return pool
}
