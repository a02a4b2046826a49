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
	ours    nic.Ours
}

// of returns a comparable, nonempty string.
func (p *plan) of(m nic.Machine) string {
	if p.desired.Node(m) {
		return "node " + said(p.desired.Machine(m))
	}
	return "none " + said(p.desired.Machine(m))
}

// modelOf returns "" for a network interface.
func (p *plan) modelOf(l *lane) string {
	if l.group != "" {
		return ""
	}
	var all []string
	for _, pools := range p.desired.Models(l.id) {
		all = append(all, "model "+said(pools))
	}
	slices.Sort(all)
	return "models " + strings.Join(all, "")
}

func said(p nic.Pools) string {
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

// newest computes the plan once per change, because it covers all pools and nodes.
func (u *Updater) newest() *plan {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if u.plan == nil || now.Sub(u.nodesAt) >= nodesServe {
		u.mu.Unlock()
		nodes := u.cfg.Cluster.Machines()
		u.mu.Lock()
		u.stale = u.stale || !slices.Equal(nodes, u.nodes)
		u.nodes, u.nodesAt = nodes, now
	}
	if u.stale || u.plan == nil {
		u.replan(now)
	}
	return u.plan
}

// replan requests machines with a new desired state; those already there are done. It requires
// u.mu.
func (u *Updater) replan(now time.Time) {
	pools, ids := make([]nic.Pool, 0, len(u.pools)), make([]lb.PoolID, 0, len(u.pools))
	for _, p := range u.pools {
		pool := p.target.Pool
		pool.Leaves = p.target.Leaves
		pools, ids = append(pools, pool), append(ids, p.target.ID)
	}
	u.plan, u.stale = &plan{nic.Desire(pools, u.nodes), nic.NewOurs(ids, nil)}, false
	for _, l := range u.lanes {
		model := u.plan.modelOf(l)
		for _, m := range l.machines {
			want := u.plan.of(m.Machine)
			switch {
			case want != m.was && want != m.want && m.want != "":
				u.ask(m, now, now.Add(gather))
			case want == m.was && l.model == model && m.state == working && !m.look && !l.running:
				u.becomes(m, done)
				u.reap(m)
			}
			m.want = want
		}
		u.rest(l)
	}
}

// rest unschedules a worker without working or waiting machines. It requires u.mu.
func (u *Updater) rest(l *lane) {
	for _, m := range l.machines {
		if m.state == working || m.state == waiting {
			return
		}
	}
	if !l.running {
		l.due, l.shown, l.listed = time.Time{}, nil, false
		delete(u.busy, l.key)
	}
}
