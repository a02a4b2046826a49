// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/publicip"
)

// Deleted is the result of DeleteUnneeded.
type Deleted struct {
	// Gone are the cluster's load balancers that do not exist.
	Gone []lb.LoadBalancerID
	// Emptying are the pools that block the deletion of a load balancer until their network interfaces have
	// left.
	Emptying []plan.Emptying
}

// unneeded is what the last read of all load balancers found. The zero value is ready to use.
type unneeded struct {
	mu sync.Mutex
	// retained are the load balancers with a frontend that only Azure requires, or with an abandoned public IP,
	// by lower-case name.
	retained map[string]bool
	// gone are load balancers that do not exist; orphans is set if there are unused abandoned public IPs.
	gone    []lb.LoadBalancerID
	orphans bool
}

func (u *unneeded) note(s Settings, balancers []lb.LoadBalancer, orphans []lb.PublicIP) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.retained, u.gone = map[string]bool{}, nil
	for _, id := range s.ids() {
		at := slices.IndexFunc(balancers, func(b lb.LoadBalancer) bool { return strings.EqualFold(b.ID.Name, id.Name) })
		if at < 0 {
			u.gone = append(u.gone, id)
		} else if lb.Tag(balancers[at].Tags, plan.TagRetained) != "" ||
			slices.ContainsFunc(orphans, func(ip lb.PublicIP) bool { return isOn(ip, []lb.LoadBalancerID{id}) }) {
			u.retained[strings.ToLower(id.Name)] = true
		}
	}
	u.orphans = slices.ContainsFunc(orphans, func(ip lb.PublicIP) bool { return ip.UsedBy == "" || isOn(ip, u.gone) })
}

// isOn reports whether one of the load balancers uses a public IP. Azure reports the use also while it deletes
// the load balancer.
func isOn(ip lb.PublicIP, balancers []lb.LoadBalancerID) bool {
	return slices.ContainsFunc(balancers, func(id lb.LoadBalancerID) bool { return hasPrefixFold(ip.UsedBy, id.String()+"/") })
}

func (u *unneeded) keeps(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.retained[strings.ToLower(name)]
}

func (u *unneeded) done(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.retained, strings.ToLower(name))
}

func (u *unneeded) removed(again bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.orphans = again
}

func (u *unneeded) rest() (missing []lb.LoadBalancerID, orphans bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gone, u.orphans
}

// forgetPools drops the record of left pools that Azure no longer has. recorded is the record from before the
// load balancers were read.
func (b *Balancers) forgetPools(ctx context.Context, recorded []lb.PoolKey, balancers []lb.LoadBalancer) error {
	exists := map[lb.PoolKey]bool{}
	known := map[lb.LoadBalancerKey]bool{}
	for _, id := range b.cfg.ids() {
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
		if f := fault.From(err); f != nil && f.Class != fault.Stale {
			return fmt.Errorf("load balancer %s: %w", id.Name, err)
		}
		add(other)
	}
	return b.left.Forget(ctx, slices.DeleteFunc(slices.Clone(recorded), func(key lb.PoolKey) bool { return exists[key] }))
}

// DeleteUnneeded deletes empty pools that Weir left to other owners, load balancers on which only a frontend
// required by Azure remains, and the public IPs of these. It works without a Service. It reads only load
// balancers known to have such parts.
func (b *Balancers) DeleteUnneeded(ctx context.Context) (Deleted, error) {
	record, err := b.left.Load(ctx)
	failed, all := []error{err}, Deleted{}
	for _, id := range b.cfg.ids() {
		observed, _ := b.placements.newest(id.Name)
		if !b.unneeded.keeps(id.Name) && lb.Tag(observed.Tags, plan.TagRetained) == "" && len(record.On(id)) == 0 {
			continue
		}
		r := removal{ended: make(chan error, 1)}
		b.queue(step{on: id}).remove(&r)
		select {
		case err := <-r.ended:
			if failed = append(failed, err); err == nil {
				b.unneeded.done(id.Name)
			}
			if len(r.Gone) > 0 {
				b.unneeded.removed(true)
			}
			all.Gone, all.Emptying = append(all.Gone, r.Gone...), append(all.Emptying, r.Emptying...)
		case <-ctx.Done():
			return all, ctx.Err()
		}
	}
	missing, orphans := b.unneeded.rest()
	for _, id := range missing {
		if observed, _ := b.placements.newest(id.Name); observed.Etag == "" { // it was not recreated since
			all.Gone = append(all.Gone, id)
		}
	}
	if orphans {
		ips, err := b.ips.Read(ctx, b.cfg.ids()[0])
		if failed = append(failed, err); err == nil {
			b.unneeded.removed(slices.ContainsFunc(ips.Orphans(), func(ip lb.PublicIP) bool { return ip.UsedBy == "" || isOn(ip, missing) }))
			ips.Remove(ctx, nil)
		}
	}
	return all, errors.Join(failed...)
}

type removal struct {
	Deleted
	ended chan error // buffered for the result
}

// remove deletes what is no longer needed. It runs between rounds, because a Service may need it again.
func (l *loadBalancer) remove(ctx context.Context, r *removal) error {
	ips, err := l.ips.Read(ctx, l.id)
	if err != nil {
		return err
	}
	unlock, err := l.enter(ctx)
	if err != nil {
		return err
	}
	err = contest.Write(ctx, l.cfg.Lease, l.name(), l.overtaken(ResourceLoadBalancer), func(ctx context.Context, valid func() bool) error {
		r.Deleted, err = l.tryRemove(ctx, ips, valid)
		return err
	})
	if unlock(); err == nil {
		ips.Remove(ctx, nil)
	}
	return err
}

func (l *loadBalancer) tryRemove(ctx context.Context, ips *publicip.Round, valid func() bool) (d Deleted, err error) {
	snap, err := l.read(ctx, nil, ips)
	if err != nil {
		return d, err
	}
	in := l.input(nil, snap)
	in.Abandoned = ips.IsAbandoned
	retained := lb.Tag(snap.observed.Tags, plan.TagRetained) != "" || slices.ContainsFunc(snap.observed.Frontends, ips.IsAbandoned)
	if retained && len(snap.owners) > 0 || !retained && len(in.Left) == 0 { // a Service may be about to use the retained frontend
		l.placements.saw(snap.observed)
		return d, nil
	}
	p, observed := plan.Make(in), snap.observed
	if !p.Empty() {
		if !valid() {
			return d, contest.ErrLeaseLost
		}
		if observed, err = l.carryOut(ctx, snap.observed, p); err != nil {
			return d, err
		}
	}
	l.settle(ctx, outcome{Plan: p, shown: observed, ips: ips})
	l.privateIPs.Note(ctx, l.id.Name, l.usersOf(observed), time.Now())
	if d.Emptying = p.Emptying; observed.Etag == "" {
		d.Gone = []lb.LoadBalancerID{l.id}
	}
	return d, l.left.Note(ctx, nil, l.id, observed)
}
