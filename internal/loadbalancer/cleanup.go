// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/publicip"
)

// CleanupResult is the result of CleanUp.
type CleanupResult struct {
	// Missing are the cluster's load balancers that do not exist.
	Missing []lb.LoadBalancerID
	// DrainingPools are the pools that block the deletion of a load balancer until their network interfaces have
	// left.
	DrainingPools []plan.DrainingPool
}

// cleanupState is what the last read of all load balancers found. The zero value is ready to use.
type cleanupState struct {
	mu sync.Mutex
	// retained are the load balancers with a frontend that only Azure requires, or with an abandoned public IP,
	// by lower-case name.
	retained map[string]bool
	// missing are load balancers that do not exist; orphans is set if there are unused abandoned public IPs.
	missing []lb.LoadBalancerID
	orphans bool
}

func (c *cleanupState) recordFindings(s Settings, balancers []lb.LoadBalancer, orphans []lb.PublicIP) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retained, c.missing = map[string]bool{}, nil
	for _, id := range s.loadBalancerIDs() {
		at := slices.IndexFunc(balancers, func(b lb.LoadBalancer) bool { return strings.EqualFold(b.ID.Name, id.Name) })
		if at < 0 {
			c.missing = append(c.missing, id)
		} else if lb.TagValue(balancers[at].Tags, plan.TagRetained) != "" ||
			slices.ContainsFunc(orphans, func(ip lb.PublicIP) bool { return isOn(ip, []lb.LoadBalancerID{id}) }) {
			c.retained[strings.ToLower(id.Name)] = true
		}
	}
	c.orphans = slices.ContainsFunc(orphans, func(ip lb.PublicIP) bool { return ip.UsedBy == "" || isOn(ip, c.missing) })
}

// isOn reports whether one of the load balancers uses a public IP. Azure reports the use also while it deletes
// the load balancer.
func isOn(ip lb.PublicIP, balancers []lb.LoadBalancerID) bool {
	return slices.ContainsFunc(balancers, func(id lb.LoadBalancerID) bool { return hasPrefixFold(ip.UsedBy, id.String()+"/") })
}

func (c *cleanupState) hasRetained(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.retained[strings.ToLower(name)]
}

func (c *cleanupState) markDone(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.retained, strings.ToLower(name))
}

func (c *cleanupState) setOrphans(orphans bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orphans = orphans
}

func (c *cleanupState) remainingWork() (missing []lb.LoadBalancerID, orphans bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missing, c.orphans
}

// forgetLeftPools drops the record of left pools that Azure no longer has. recorded is the record from before the
// load balancers were read.
func (b *LoadBalancers) forgetLeftPools(ctx context.Context, recorded []lb.PoolKey, balancers []lb.LoadBalancer) error {
	exists := map[lb.PoolKey]bool{}
	known := map[lb.LoadBalancerKey]bool{}
	for _, id := range b.cfg.loadBalancerIDs() {
		known[id.Key()] = true
	}
	add := func(balancer lb.LoadBalancer) {
		for _, p := range balancer.Pools {
			exists[lb.PoolID{LoadBalancer: balancer.ID, Name: p.ID.Name}.Key()] = true
		}
	}
	for _, balancer := range balancers {
		add(balancer)
	}
	for _, key := range recorded { // azure.json may have named other load balancers before
		at := key.LoadBalancer()
		if known[at] {
			continue
		}
		known[at] = true
		id, err := lb.ParseResourceID(string(at), lb.TypeLoadBalancer)
		if err != nil {
			continue
		}
		other, err := b.cfg.Azure.GetLoadBalancer(ctx, lb.LoadBalancerID{SubscriptionID: id.SubscriptionID, ResourceGroup: id.ResourceGroup, Name: id.Name})
		if f := armerror.FromError(err); f != nil && f.Class != armerror.Stale {
			return fmt.Errorf("load balancer %s: %w", id.Name, err)
		}
		add(other)
	}
	return b.leftPools.ForgetPools(ctx, slices.DeleteFunc(slices.Clone(recorded), func(key lb.PoolKey) bool { return exists[key] }))
}

// CleanUp deletes empty pools that Weir left to other owners, load balancers on which only a frontend
// required by Azure remains, and the public IPs of these. It works without a Service. It reads only load
// balancers known to have such parts.
func (b *LoadBalancers) CleanUp(ctx context.Context) (CleanupResult, error) {
	record, err := b.leftPools.LoadRecord(ctx)
	failed, total := []error{err}, CleanupResult{}
	for _, id := range b.cfg.loadBalancerIDs() {
		observed, _ := b.cache.latestState(id.Name)
		if !b.cleanup.hasRetained(id.Name) && lb.TagValue(observed.Tags, plan.TagRetained) == "" && len(record.NamesOn(id)) == 0 {
			continue
		}
		r := cleanupRequest{result: make(chan error, 1)}
		b.queueFor(step{on: id}).addCleanup(&r)
		select {
		case err := <-r.result:
			if failed = append(failed, err); err == nil {
				b.cleanup.markDone(id.Name)
			}
			if len(r.Missing) > 0 {
				b.cleanup.setOrphans(true)
			}
			total.Missing, total.DrainingPools = append(total.Missing, r.Missing...), append(total.DrainingPools, r.DrainingPools...)
		case <-ctx.Done():
			return total, ctx.Err()
		}
	}
	missing, orphans := b.cleanup.remainingWork()
	for _, id := range missing {
		if observed, _ := b.cache.latestState(id.Name); observed.Etag == "" { // it was not recreated since
			total.Missing = append(total.Missing, id)
		}
	}
	if orphans {
		ips, err := b.publicIPManager.ReadRound(ctx, b.cfg.loadBalancerIDs()[0])
		if failed = append(failed, err); err == nil {
			b.cleanup.setOrphans(slices.ContainsFunc(ips.Orphans(), func(ip lb.PublicIP) bool { return ip.UsedBy == "" || isOn(ip, missing) }))
			ips.RemoveOrphans(ctx, b.requestedIPs())
		}
	}
	return total, errors.Join(failed...)
}

// requestedIPs returns which public IPs a Service has or requests.
func (b *LoadBalancers) requestedIPs() func(lb.PublicIP) bool {
	requested := map[string]bool{}
	for _, s := range b.cfg.Cluster.ExposedServices() {
		for _, a := range s.Addresses {
			requested[a.String()] = true
		}
		for _, text := range s.Requested {
			requested[canonicalAddress(text)] = true
		}
	}
	return func(ip lb.PublicIP) bool {
		return requested[ip.Address.String()] || requested[strings.ToLower(ip.ID.Name)]
	}
}

// canonicalAddress returns an address in canonical form, or a name in lower case.
func canonicalAddress(text string) string {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.String()
	}
	return strings.ToLower(text)
}

type cleanupRequest struct {
	CleanupResult
	result chan error // buffered for the result
}

func (q *queue) addCleanup(r *cleanupRequest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cleanups = append(q.cleanups, r)
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// runCleanups deletes what is no longer needed. It runs between rounds, because a Service may need it again.
func (q *queue) runCleanups(ctx context.Context) {
	q.mu.Lock()
	cleanups := q.cleanups
	q.cleanups = nil
	q.mu.Unlock()
	l, _ := q.of.(*loadBalancer) // no other queue has cleanups
	for _, r := range cleanups {
		ips, err := l.publicIPManager.ReadRound(ctx, l.id)
		if err == nil {
			err = l.runLocked(ctx, func(ctx context.Context, valid func() bool) (err error) {
				r.CleanupResult, err = l.tryCleanup(ctx, ips, valid)
				return err
			})
		}
		if err == nil {
			ips.RemoveOrphans(ctx, l.requestedIPs())
		}
		r.result <- err
	}
}

// retainedFrontends returns the frontends that only Azure requires, or with a public IP that its Service left.
func retainedFrontends(observed lb.LoadBalancer, ips *publicip.Round) []lb.Frontend {
	return slices.DeleteFunc(slices.Clone(observed.Frontends), func(f lb.Frontend) bool {
		return !strings.EqualFold(f.Name, lb.TagValue(observed.Tags, plan.TagRetained)) && !ips.IsAbandoned(f)
	})
}

// mayBeNeeded reports whether a Service may be about to use one of the retained frontends: it belongs to the load
// balancer, or it is not placed, maybe because of an error in it, and has or requests such an address.
func (l *loadBalancer) mayBeNeeded(retained []lb.Frontend, snap snapshot) bool {
	places := map[string]bool{}
	for _, f := range retained {
		address := addressOf(f, snap.publicIPs)
		places[address.String()], places[strings.ToLower(path.Base(f.PublicIP))] = address.IsValid(), f.PublicIP != ""
	}
	services := map[string]ExposedService{}
	for _, s := range l.cfg.Cluster.ExposedServices() {
		services[s.Owner] = s
	}
	owners := l.cache.ownersAt(l.id.Name)
	hasParts := func(owner string) bool {
		return slices.ContainsFunc(snap.observed.Frontends, func(f lb.Frontend) bool { return hasPrefixFold(f.Name, owner) }) ||
			slices.ContainsFunc(snap.observed.Rules, func(r lb.Rule) bool { return hasPrefixFold(r.Name, owner) })
	}
	return slices.ContainsFunc(snap.owners, func(owner string) bool {
		s := services[owner]
		return owners[owner] || hasParts(owner) || slices.ContainsFunc(s.Addresses, func(a netip.Addr) bool { return places[a.String()] }) ||
			slices.ContainsFunc(s.Requested, func(text string) bool { return places[canonicalAddress(text)] })
	})
}

func (l *loadBalancer) tryCleanup(ctx context.Context, ips *publicip.Round, valid func() bool) (d CleanupResult, err error) {
	snap, err := l.readSnapshot(ctx, nil, ips)
	if err != nil {
		return d, err
	}
	in := l.planInput(nil, snap)
	in.IsAbandoned = ips.IsAbandoned
	frontends := retainedFrontends(snap.observed, ips)
	retained := lb.TagValue(snap.observed.Tags, plan.TagRetained) != "" || len(frontends) > 0
	if retained && l.mayBeNeeded(frontends, snap) || !retained && len(in.LeftPools) == 0 {
		l.cache.recordState(snap.observed)
		return d, nil
	}
	p, observed := plan.Make(in), snap.observed
	if !p.IsEmpty() {
		if !valid() {
			return d, conflict.ErrLeaseExpired
		}
		if observed, err = l.applyPlan(ctx, snap.observed, p); err != nil {
			return d, err
		}
	}
	l.recordOutcome(ctx, tryResult{Plan: p, observed: observed, publicIPs: ips})
	l.privateIPs.RecordUsers(ctx, l.id.Name, l.usersOf(observed), time.Now())
	if d.DrainingPools = p.DrainingPools; observed.Etag == "" {
		d.Missing = []lb.LoadBalancerID{l.id}
	}
	return d, l.leftPools.RecordLeft(ctx, nil, l.id, observed)
}
