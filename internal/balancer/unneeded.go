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

// Deleted is what came of deleting what nothing needs any more.
type Deleted struct {
	// Gone are load balancers of the cluster that do not exist.
	Gone []lb.LoadBalancerID
	// Emptying are the pools that keep a load balancer until their network interfaces have left.
	Emptying []plan.Emptying
}

// unneeded is what the last look at all load balancers has found. Its zero value is ready.
type unneeded struct {
	mu sync.Mutex
	// retained are the load balancers with a frontend that Azure alone requires, or with the public IP of a Service that
	// has left it, by name in lower case.
	retained map[string]bool
	// gone are those that do not exist, and orphans is true if public IPs are free that their Services have left.
	gone    []lb.LoadBalancerID
	orphans bool
}

// note takes in what a look has shown; orphans are the public IPs that their Services have left.
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

// isOn reports whether one of these load balancers uses a public IP. Azure shows that also while it deletes the load
// balancer.
func isOn(ip lb.PublicIP, balancers []lb.LoadBalancerID) bool {
	return slices.ContainsFunc(balancers, func(id lb.LoadBalancerID) bool { return hasPrefixFold(ip.UsedBy, id.String()+"/") })
}

// keeps reports whether a load balancer has a frontend that Azure alone requires, as far as the last look says.
func (u *unneeded) keeps(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.retained[strings.ToLower(name)]
}

// done notes that a load balancer was looked at.
func (u *unneeded) done(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.retained, strings.ToLower(name))
}

// removed notes whether public IPs that their Services have left are to be looked for again.
func (u *unneeded) removed(again bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.orphans = again
}

func (u *unneeded) rest() (gone []lb.LoadBalancerID, orphans bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gone, u.orphans
}

// forgetPools removes the pools from the record of those that were left which Azure does not have: before are those
// on record before the load balancers were read.
func (b *Balancers) forgetPools(ctx context.Context, before []lb.PoolKey, balancers []lb.LoadBalancer) error {
	there := map[lb.PoolKey]bool{}
	known := map[lb.LoadBalancerKey]bool{}
	for _, id := range b.cfg.ids() {
		known[id.Key()] = true
	}
	add := func(balancer lb.LoadBalancer) {
		for _, p := range balancer.Pools {
			there[lb.PoolID{LoadBalancer: balancer.ID, Name: p.ID.Name}.Key()] = true
		}
	}
	for _, balancer := range balancers {
		add(balancer)
	}
	for _, key := range before { // azure.json may have named others before
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
	return b.left.Forget(ctx, slices.DeleteFunc(slices.Clone(before), func(key lb.PoolKey) bool { return there[key] }))
}

// DeleteUnneeded deletes the pools that Weir left to others and that are empty, the load balancers on which only a
// frontend is left that Azure required for others, and the public IPs of these. No Service is needed for that: the
// last one may have gone before. It reads those load balancers that are known to have such parts.
func (b *Balancers) DeleteUnneeded(ctx context.Context) (Deleted, error) {
	record, err := b.left.Load(ctx)
	failed, all := []error{err}, Deleted{}
	for _, id := range b.cfg.ids() {
		shown, _ := b.placements.newest(id.Name)
		if !b.unneeded.keeps(id.Name) && lb.Tag(shown.Tags, plan.TagRetained) == "" && len(record.On(id)) == 0 {
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
	gone, orphans := b.unneeded.rest()
	for _, id := range gone {
		if shown, _ := b.placements.newest(id.Name); shown.Etag == "" { // nobody has made it since
			all.Gone = append(all.Gone, id)
		}
	}
	if orphans {
		ips, err := b.ips.Read(ctx, b.cfg.ids()[0])
		if failed = append(failed, err); err == nil {
			b.unneeded.removed(slices.ContainsFunc(ips.Orphans(), func(ip lb.PublicIP) bool { return ip.UsedBy == "" || isOn(ip, gone) }))
			ips.Remove(ctx, nil)
		}
	}
	return all, errors.Join(failed...)
}

// removal is a request to delete what nothing needs any more of a load balancer.
type removal struct {
	Deleted
	ended chan error // has room for the end
}

// remove deletes what nothing needs any more. It is done between rounds, for a Service may come to what is deleted.
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

// tryRemove reads, plans for no Service, and writes if there is anything to write.
func (l *loadBalancer) tryRemove(ctx context.Context, ips *publicip.Round, valid func() bool) (d Deleted, err error) {
	seen, err := l.read(ctx, nil, ips)
	if err != nil {
		return d, err
	}
	in := l.input(nil, seen)
	in.Abandoned = ips.IsAbandoned
	retained := lb.Tag(seen.observed.Tags, plan.TagRetained) != "" || slices.ContainsFunc(seen.observed.Frontends, ips.IsAbandoned)
	if retained && len(seen.owners) > 0 || !retained && len(in.Left) == 0 { // a Service may be on its way to what is retained
		l.placements.saw(seen.observed)
		return d, nil
	}
	p, shown := plan.Make(in), seen.observed
	if !p.Empty() {
		if !valid() {
			return d, contest.ErrLeaseLost
		}
		if shown, err = l.carryOut(ctx, seen.observed, p); err != nil {
			return d, err
		}
	}
	l.settle(ctx, outcome{Plan: p, shown: shown, ips: ips})
	l.privateIPs.Note(ctx, l.id.Name, l.usersOf(shown), time.Now())
	if d.Emptying = p.Emptying; shown.Etag == "" {
		d.Gone = []lb.LoadBalancerID{l.id}
	}
	return d, l.left.Note(ctx, nil, l.id, shown)
}
