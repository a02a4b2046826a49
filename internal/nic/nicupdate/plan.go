// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// plan is the desired state of all machines. It is immutable.
type plan struct {
	desired nic.Desired
	managed nic.ManagedPools
}

// desiredState returns a comparable, nonempty string.
func (p *plan) desiredState(m nic.Machine) string {
	if p.desired.IsNode(m) {
		return "node " + formatPools(p.desired.MachinePools(m))
	}
	return "none " + formatPools(p.desired.MachinePools(m))
}

// desiredModels returns "" for a network interface.
func (p *plan) desiredModels(l *worker) string {
	if l.resourceGroup != "" {
		return ""
	}
	var models []string
	for _, pools := range p.desired.ModelCandidates(l.id) {
		models = append(models, "model "+formatPools(pools))
	}
	slices.Sort(models)
	return "models " + strings.Join(models, "")
}

func formatPools(p nic.Pools) string {
	var b strings.Builder
	for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
		b.WriteString(string(family))
		for _, id := range p[family] {
			b.WriteString(" " + string(id.Key()))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// currentPlan computes the plan once per change, because it covers all pools and nodes.
func (u *Updater) currentPlan() *plan {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if u.plan == nil || now.Sub(u.nodesReadAt) >= nodesTTL {
		u.mu.Unlock()
		nodes := u.cfg.Cluster.Machines()
		u.mu.Lock()
		u.planStale = u.planStale || !slices.Equal(nodes, u.nodes)
		u.nodes, u.nodesReadAt = nodes, now
	}
	if u.planStale || u.plan == nil {
		u.rebuildPlan(now)
	}
	return u.plan
}

// rebuildPlan requests machines with a new desired state; those already there are done. It requires
// u.mu.
func (u *Updater) rebuildPlan(now time.Time) {
	pools, ids := make([]nic.Pool, 0, len(u.pools)), make([]lb.PoolID, 0, len(u.pools))
	for _, p := range u.pools {
		pool := p.target.Pool
		pool.ToRemove = p.target.ToRemove
		pools, ids = append(pools, pool), append(ids, p.target.ID)
	}
	u.plan, u.planStale = &plan{nic.NewDesired(pools, u.nodes), nic.NewManagedPools(ids, nil)}, false
	for _, l := range u.workers {
		model := u.plan.desiredModels(l)
		for _, m := range l.machines {
			want := u.plan.desiredState(m.Machine)
			switch {
			case want != m.observed && want != m.desired && m.desired != "":
				u.requestUpdate(m, now, now.Add(batchDelay))
			case want == m.observed && l.modelState == model && m.state == stateWorking && !m.forceRead && !l.running:
				u.setState(m, stateDone)
				u.removeIfUnused(m)
			}
			m.desired = want
		}
		u.unschedule(l)
	}
}

// unschedule unschedules a worker without working or waiting machines. It requires u.mu.
func (u *Updater) unschedule(l *worker) {
	for _, m := range l.machines {
		if m.state == stateWorking || m.state == stateWaiting {
			return
		}
	}
	if !l.running {
		l.due, l.interfaces, l.hasList = time.Time{}, nil, false
		delete(u.activeWorkers, l.key)
	}
}
