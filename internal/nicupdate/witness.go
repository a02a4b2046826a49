// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"strings"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// Azure rejects the deletion of a pool that a scale set model names. So an empty pool is released
// after every scale set was checked, also those without nodes.

const (
	setsServe = 5 * time.Minute
	setsAgain = 10 * time.Second
)

// codeNotAllowed is returned to a role without access to scale sets, as in clusters without any. It
// must not block the deletion forever.
const codeNotAllowed = "AuthorizationFailed"

// sets are the uniform scale sets near the nodes. Updater.mu guards them.
type sets struct {
	all     []lb.ResourceID
	at      time.Time // last list; zero if never listed
	asked   bool      // a list is requested
	listing bool
	again   time.Time
	groups  map[string]lb.ResourceID // resource groups of nodes
}

// witnesses adds an instance of each scale set, and reports whether they are unknown yet. It
// requires u.mu.
func (u *Updater) witnesses(roles map[string]role, machines map[string]nic.Machine, nodes []nic.Node, now time.Time) (looking bool) {
	seen := map[string]bool{}
	for _, m := range machines {
		seen[m.ScaleSet.Key()] = true
	}
	add := func(m nic.Machine) {
		if set := m.ScaleSet.Key(); m.Uniform() && !seen[set] {
			seen[set] = true
			roles[m.Key()], machines[m.Key()] = witness, m
		}
	}
	u.sets.groups = map[string]lb.ResourceID{}
	for _, of := range append([]nic.Node{{Machine: nic.Machine{VM: u.cfg.Home}}}, nodes...) {
		add(of.Machine)
		id := of.Machine.VM
		if of.Machine.Uniform() {
			id = of.Machine.ScaleSet
		}
		if id.SubscriptionID != "" {
			u.sets.groups[strings.ToLower(id.SubscriptionID+"/"+id.ResourceGroup)] = id
		}
	}
	for _, id := range u.sets.all {
		add(nic.Machine{ScaleSet: id, Instance: "0"}) // exists or not
	}
	u.sets.asked = u.sets.at.IsZero() || now.Sub(u.sets.at) >= setsServe
	return u.sets.asked
}

func (p *pool) keepsWitnesses(roles map[string]role, machines map[string]nic.Machine) {
	for key, r := range p.roles {
		if m := p.machines[key]; r >= witness && m != nil {
			roles[key], machines[key] = r, m.Machine
		}
	}
}

// listSets returns when to retry; zero means on the next request.
func (u *Updater) listSets(ctx context.Context, now time.Time, run func(func())) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := &u.sets
	if !s.asked || s.listing || now.Before(s.again) {
		if s.asked && !s.listing {
			return s.again
		}
		return time.Time{}
	}
	groups := make([]lb.ResourceID, 0, len(s.groups))
	for _, id := range s.groups {
		id.Type, id.Name = lb.TypeScaleSet, "all"
		groups = append(groups, id)
	}
	s.listing = true
	run(func() { u.learnSets(ctx, groups) })
	return time.Time{}
}

func (u *Updater) learnSets(ctx context.Context, groups []lb.ResourceID) {
	var all []lb.ResourceID
	again, failed := time.Now().Add(setsAgain), false
	for _, group := range groups {
		if until, _ := u.cfg.Azure.EnterResource(group); !until.IsZero() {
			again, failed = until, true
			break
		}
		of, err := u.cfg.Azure.ListScaleSets(ctx, group.SubscriptionID, group.ResourceGroup)
		if f := fault.From(err); f != nil && f.Class != fault.Stale && f.Code != codeNotAllowed {
			failed = true
			break
		}
		if err != nil {
			u.cfg.Log.WarnContext(ctx, "scale sets not listed: one that names an empty pool keeps Azure from deleting it", "resourceGroup", group.ResourceGroup, "err", err)
		}
		for _, set := range of {
			if set.Uniform {
				all = append(all, set.ID)
			}
		}
	}
	u.mu.Lock()
	s := &u.sets
	s.listing, s.again = false, again
	if !failed {
		s.all, s.at, s.asked = all, time.Now(), false
		for key, p := range u.pools {
			if len(p.target.Members) == 0 && p.working == 0 {
				u.settled[key] = p.target.ID
			}
		}
	}
	u.mu.Unlock()
	u.tell(ctx)
	u.signal()
}
