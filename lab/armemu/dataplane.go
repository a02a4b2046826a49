// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"net/netip"
	"slices"
	"time"
)

// Who takes new flows: pure functions of what a load balancer was told and of
// when nodes died. A sentence here that is not Azure's own is marked as assumed
// in docs/reference/emulator.md.

// A lifeChange is a node's death or its recovery.
type lifeChange struct {
	at    time.Time
	alive bool
}

// A life is a node's changes, oldest first. One without any has always been
// alive; a dead node answers no probe and no flow.
type life []lifeChange

func (l life) alive(t time.Time) bool {
	alive := true
	for _, c := range l {
		if c.at.After(t) {
			break
		}
		alive = c.alive
	}
	return alive
}

// A flowProbe takes an address out after so many failed probes in a row, and
// back after as many good ones.
type flowProbe struct {
	interval  time.Duration
	threshold int
	// allUp sends new flows to all if every address is probed down.
	allUp bool
}

// window is how long a change has to last before the probe acts on it: the last
// probe before the change came right before it, so the first one that meets it
// comes one interval later.
func (p *flowProbe) window() time.Duration { return p.interval * time.Duration(p.threshold) }

// up reports whether the probe has a node in rotation at t. What lasts shorter
// than the window breaks off the row, and goes unnoticed.
func (p *flowProbe) up(node life, t time.Time) bool {
	up := true
	for i, c := range node {
		until := t
		if i+1 < len(node) && node[i+1].at.Before(t) {
			until = node[i+1].at
		}
		if until.Sub(c.at) >= p.window() {
			up = c.alive
		}
	}
	return up
}

// A flowAddress is an address of one pool.
type flowAddress struct {
	pool, name string
	ip         netip.Addr // invalid if nobody knows it; such a one never dies
	adminState string
}

// A flowRule is a load balancing rule as new flows meet it.
type flowRule struct {
	id, frontend, probeID string
	probe                 *flowProbe // nil if the rule has none
	addresses             []flowAddress
}

func (r *flowRule) equal(o *flowRule) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.id == o.id && r.frontend == o.frontend && r.probeID == o.probeID &&
		(r.probe == o.probe || r.probe != nil && o.probe != nil && *r.probe == *o.probe) &&
		slices.Equal(r.addresses, o.addresses)
}

// lives are the nodes of a rule, in the order of its addresses.
func (r *flowRule) lives(nodes map[netip.Addr]life) []life {
	all := make([]life, len(r.addresses))
	for i := range r.addresses {
		all[i] = nodes[r.addresses[i].ip]
	}
	return all
}

// takers says of each address whether it takes new flows at t.
func (r *flowRule) takers(nodes []life, t time.Time) []bool {
	takes := make([]bool, len(r.addresses))
	for i := range r.addresses {
		a := &r.addresses[i]
		switch {
		case r.probe == nil: // admin state acts through the probe
			takes[i] = true
		case a.adminState == "Down":
		default:
			takes[i] = a.adminState == "Up" || r.probe.up(nodes[i], t)
		}
	}
	if r.probe != nil && r.probe.allUp && !slices.Contains(takes, true) {
		for i := range r.addresses {
			takes[i] = r.addresses[i].adminState != "Down"
		}
	}
	return takes
}

// A ruleVersion is what a rule was from a time on; nil if it was not there.
type ruleVersion struct {
	at   time.Time
	rule *flowRule
}

// at returns what the rule was at t.
func ruleAt(versions []ruleVersion, t time.Time) *flowRule {
	var rule *flowRule
	for _, v := range versions {
		if v.at.After(t) {
			break
		}
		rule = v.rule
	}
	return rule
}

// A tally is what went wrong in a stretch of time, in seconds.
type tally struct {
	// misdirected is the share of the addresses taking new flows that were dead,
	// summed over time.
	misdirected float64
	// unserved is for how long no address took any.
	unserved float64
}

// count adds up from one time to another. Between two cuts nothing changes, so
// the sum is exact.
func count(versions []ruleVersion, all map[netip.Addr]life, from, to time.Time) tally {
	var sum tally
	for i, v := range versions {
		start, end := v.at, to
		if start.Before(from) {
			start = from
		}
		if i+1 < len(versions) && versions[i+1].at.Before(end) {
			end = versions[i+1].at
		}
		if v.rule == nil || !start.Before(end) {
			continue
		}
		nodes := v.rule.lives(all)
		cuts := append(v.rule.cuts(nodes, start, end), end)
		for j, at := range cuts[:len(cuts)-1] {
			sum.add(v.rule.share(nodes, at), cuts[j+1].Sub(at))
		}
	}
	return sum
}

func (s *tally) add(dead float64, d time.Duration) {
	if dead < 0 {
		s.unserved += d.Seconds()
		return
	}
	s.misdirected += dead * d.Seconds()
}

// share is which part of the addresses taking new flows is dead; below zero if
// none takes any.
func (r *flowRule) share(nodes []life, t time.Time) float64 {
	all, dead := 0, 0
	for i, takes := range r.takers(nodes, t) {
		if !takes {
			continue
		}
		all++
		if !nodes[i].alive(t) {
			dead++
		}
	}
	if all == 0 {
		return -1
	}
	return float64(dead) / float64(all)
}

// cuts are the times from start until end at which nodes or probes change, and
// the start.
func (r *flowRule) cuts(nodes []life, start, end time.Time) []time.Time {
	cuts := []time.Time{start}
	cut := func(t time.Time) {
		if t.After(start) && t.Before(end) {
			cuts = append(cuts, t)
		}
	}
	for _, node := range nodes {
		for _, c := range node {
			cut(c.at)
			if r.probe != nil {
				cut(c.at.Add(r.probe.window()))
			}
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	return slices.CompactFunc(cuts, time.Time.Equal)
}
