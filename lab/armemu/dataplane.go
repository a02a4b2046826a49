// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"net/netip"
	"slices"
	"time"
)

// This file models which addresses receive new flows. docs/reference/emulator.md marks assumptions.

type nodeChange struct {
	at    time.Time
	alive bool
}

// nodeLife lists a node's changes, oldest first; a node starts alive.
type nodeLife []nodeChange

func (l nodeLife) isAlive(t time.Time) bool {
	alive := true
	for _, c := range l {
		if c.at.After(t) {
			break
		}
		alive = c.alive
	}
	return alive
}

// flowProbe removes an address after threshold failed probes in a row, and restores it after as
// many successes.
type flowProbe struct {
	interval  time.Duration
	threshold int
	// allUp sends new flows to all if every address is probed down.
	allUp bool
}

// reactionTime is how long a change must last to have an effect. The last probe is assumed right before
// the change.
func (p *flowProbe) reactionTime() time.Duration { return p.interval * time.Duration(p.threshold) }

func (p *flowProbe) isUp(node nodeLife, t time.Time) bool {
	up := true
	for i, c := range node {
		until := t
		if i+1 < len(node) && node[i+1].at.Before(t) {
			until = node[i+1].at
		}
		if until.Sub(c.at) >= p.reactionTime() {
			up = c.alive
		}
	}
	return up
}

type flowAddress struct {
	pool, name string
	ip         netip.Addr // invalid if unknown; such a node never dies
	adminState string
}

type flowRule struct {
	id, frontend, probeID string
	probe                 *flowProbe // nil if the rule has none
	addresses             []flowAddress
}

func (r *flowRule) equalRule(o *flowRule) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.id == o.id && r.frontend == o.frontend && r.probeID == o.probeID &&
		(r.probe == o.probe || r.probe != nil && o.probe != nil && *r.probe == *o.probe) &&
		slices.Equal(r.addresses, o.addresses)
}

func (r *flowRule) nodeLives(nodes map[netip.Addr]nodeLife) []nodeLife {
	lives := make([]nodeLife, len(r.addresses))
	for i := range r.addresses {
		lives[i] = nodes[r.addresses[i].ip]
	}
	return lives
}

func (r *flowRule) acceptsNewFlows(nodes []nodeLife, t time.Time) []bool {
	states := make([]string, len(r.addresses))
	for i := range r.addresses {
		states[i] = r.addresses[i].adminState
	}
	return acceptNewFlows(states, r.probe != nil, r.probe != nil && r.probe.allUp, func(i int) bool { return r.probe.isUp(nodes[i], t) })
}

// acceptNewFlows returns for each admin state whether the address takes new flows. isProbedUp is called only if the
// rule has a probe.
func acceptNewFlows(states []string, hasProbe, allUp bool, isProbedUp func(int) bool) []bool {
	takes := make([]bool, len(states))
	for i, state := range states {
		switch {
		case !hasProbe: // admin state acts through the probe
			takes[i] = true
		case state == "Down":
		default:
			takes[i] = state == "Up" || isProbedUp(i)
		}
	}
	if hasProbe && allUp && !slices.Contains(takes, true) {
		for i, state := range states {
			takes[i] = state != "Down"
		}
	}
	return takes
}

type ruleVersion struct {
	at   time.Time
	rule *flowRule
}

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

type flowTotals struct {
	// dead share of the addresses receiving new flows, integrated over seconds
	misdirected float64
	// seconds without any address receiving new flows
	unserved float64
}

// sumFlows covers [from, to). Nothing changes between two cuts, so the sum is exact.
func sumFlows(versions []ruleVersion, lives map[netip.Addr]nodeLife, from, to time.Time) flowTotals {
	var sum flowTotals
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
		nodes := v.rule.nodeLives(lives)
		cuts := append(v.rule.changeTimes(nodes, start, end), end)
		for j, at := range cuts[:len(cuts)-1] {
			sum.addInterval(v.rule.deadShare(nodes, at), cuts[j+1].Sub(at))
		}
	}
	return sum
}

func (f *flowTotals) addInterval(dead float64, d time.Duration) {
	if dead < 0 {
		f.unserved += d.Seconds()
		return
	}
	f.misdirected += dead * d.Seconds()
}

// deadShare returns -1 if no address receives new flows.
func (r *flowRule) deadShare(nodes []nodeLife, t time.Time) float64 {
	total, dead := 0, 0
	for i, takes := range r.acceptsNewFlows(nodes, t) {
		if !takes {
			continue
		}
		total++
		if !nodes[i].isAlive(t) {
			dead++
		}
	}
	if total == 0 {
		return -1
	}
	return float64(dead) / float64(total)
}

func (r *flowRule) changeTimes(nodes []nodeLife, start, end time.Time) []time.Time {
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
				cut(c.at.Add(r.probe.reactionTime()))
			}
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	return slices.CompactFunc(cuts, time.Time.Equal)
}
