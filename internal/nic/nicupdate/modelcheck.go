// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// Azure rejects the deletion of a pool that a scale set model names. So an empty pool is released
// after every scale set was checked, also those without nodes.

const (
	scaleSetsTTL        = 5 * time.Minute
	scaleSetsRetryDelay = 10 * time.Second
)

// codeAuthorizationFailed is returned to a role without access to scale sets, as in clusters without any. It
// must not block the deletion forever.
const codeAuthorizationFailed = "AuthorizationFailed"

// scaleSetCache are the uniform scale sets near the nodes. Updater.mu guards them.
type scaleSetCache struct {
	ids            []lb.ResourceID
	lastListAt     time.Time // last list; zero if never listed
	listRequested  bool      // a list is requested
	listRunning    bool
	retryAt        time.Time
	resourceGroups map[string]lb.ResourceID // resource groups of nodes
}

// addModelChecks adds an instance of each scale set, and reports whether they are unknown yet. It
// requires u.mu.
func (u *Updater) addModelChecks(roles map[string]role, machines map[string]nic.Machine, nodes []nic.Node, now time.Time) (checking bool) {
	seen := map[string]bool{}
	for _, m := range machines {
		seen[m.ScaleSet.Key()] = true
	}
	add := func(m nic.Machine) {
		if set := m.ScaleSet.Key(); m.IsUniform() && !seen[set] {
			seen[set] = true
			roles[m.Key()], machines[m.Key()] = roleModelCheck, m
		}
	}
	u.scaleSets.resourceGroups = map[string]lb.ResourceID{}
	for _, of := range append([]nic.Node{{Machine: nic.Machine{VM: u.cfg.Home}}}, nodes...) {
		add(of.Machine)
		id := of.Machine.VM
		if of.Machine.IsUniform() {
			id = of.Machine.ScaleSet
		}
		if id.SubscriptionID != "" {
			u.scaleSets.resourceGroups[strings.ToLower(id.SubscriptionID+"/"+id.ResourceGroup)] = id
		}
	}
	for _, id := range u.scaleSets.ids {
		add(nic.Machine{ScaleSet: id, Instance: "0"}) // exists or not
	}
	u.scaleSets.listRequested = u.scaleSets.lastListAt.IsZero() || now.Sub(u.scaleSets.lastListAt) >= scaleSetsTTL
	return u.scaleSets.listRequested
}

func (p *pool) retainCheckedModels(roles map[string]role, machines map[string]nic.Machine) {
	for key, r := range p.roles {
		if m := p.machines[key]; r >= roleModelCheck && m != nil {
			roles[key], machines[key] = r, m.Machine
		}
	}
}

// listScaleSets returns when to retry; zero means on the next request.
func (u *Updater) listScaleSets(ctx context.Context, now time.Time, run func(func())) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := &u.scaleSets
	if !s.listRequested || s.listRunning || now.Before(s.retryAt) {
		if s.listRequested && !s.listRunning {
			return s.retryAt
		}
		return time.Time{}
	}
	groups := make([]lb.ResourceID, 0, len(s.resourceGroups))
	for _, id := range s.resourceGroups {
		id.Type, id.Name = lb.TypeScaleSet, "all"
		groups = append(groups, id)
	}
	s.listRunning = true
	run(func() { u.refreshScaleSets(ctx, groups) })
	return time.Time{}
}

func (u *Updater) refreshScaleSets(ctx context.Context, groups []lb.ResourceID) {
	var ids []lb.ResourceID
	recheckAt, failed := time.Now().Add(scaleSetsRetryDelay), false
	for _, group := range groups {
		if until, _ := u.cfg.Azure.EnterResource(group); !until.IsZero() {
			recheckAt, failed = until, true
			break
		}
		of, err := u.cfg.Azure.ListScaleSets(ctx, group.SubscriptionID, group.ResourceGroup)
		if f := armerror.FromError(err); f != nil && f.Class != armerror.Stale && f.Code != codeAuthorizationFailed {
			failed = true
			break
		}
		if err != nil {
			u.cfg.Log.WarnContext(ctx, "scale sets not listed: one that names an empty pool keeps Azure from deleting it", "resourceGroup", group.ResourceGroup, "err", err)
		}
		for _, set := range of {
			if set.Uniform {
				ids = append(ids, set.ID)
			}
		}
	}
	u.mu.Lock()
	s := &u.scaleSets
	s.listRunning, s.retryAt = false, recheckAt
	if !failed {
		s.ids, s.lastListAt, s.listRequested = ids, time.Now(), false
		for key, p := range u.pools {
			if len(p.target.Members) == 0 && p.workingCount == 0 {
				u.idlePools[key] = p.target.ID
			}
		}
	}
	u.mu.Unlock()
	u.notifyIdle(ctx)
	u.signal()
}
