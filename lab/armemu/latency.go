// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Latency is a profile of how long operations take.
type Latency string

// The profiles. They differ in load balancers whose pools hold IP addresses.
const (
	// Quiet is what was recorded with no machine behind the addresses. It is the default: for
	// tests of what happens in which order, and for clouds that are still being built.
	Quiet Latency = "quiet"
	// Busy is for machines in service: a load balancer with members of any sort takes as long
	// as was recorded with network interfaces. It is for figures: lag, drains, whole days.
	Busy Latency = "busy"
)

// ParseLatency returns the profile of that name; empty is Quiet.
func ParseLatency(name string) (Latency, error) {
	switch l := Latency(name); l {
	case "":
		return Quiet, nil
	case Quiet, Busy:
		return l, nil
	}
	return "", fmt.Errorf("latency profile %q is unknown: use %s (recorded without machines) or %s (with machines in service)", name, Quiet, Busy)
}

// A spread is how long operations of one sort take, in seconds: half of them at most median,
// nine of ten at most p90, none longer than most.
type spread struct{ median, p90, most float64 }

// Operations that do not take as long as their type alone says. Of the medians, which polls
// bound from below and above, each is the middle.
var (
	programmed = spread{27, 72, 142}    // a load balancer whose members have to be told
	unmanned   = spread{3, 4, 4}        // a load balancer with addresses that no machine has
	instant    = spread{}               // a load balancer without members
	attached   = spread{41.5, 72, 198}  // a network interface that a machine has
	removed    = spread{5, 9, 10}       // a DELETE in Microsoft.Network
	machine    = spread{40, 108, 198}   // a machine of its own
	instance   = spread{15, 30, 30}     // a machine of a scale set
	upgraded   = spread{45.5, 108, 198} // machines of a scale set that take its model
)

// members are what the pools of a load balancer hold.
type members int

const (
	noMembers members = iota
	addressMembers
	interfaceMembers
)

// spreadOf is how long a write takes. members are those before and after it, the most
// laborious of them; machines says that a machine has the network interface.
func spreadOf(id resourceID, kind Kind, profile Latency, m members, machines bool) spread {
	own := id.root.put
	if id.child != nil {
		own = id.child.put
	}
	switch {
	case kind == KindDelete && id.child != nil:
		return id.child.delete
	case kind == KindDelete:
		return id.root.delete
	case id.root == loadBalancerKind && (m == interfaceMembers || m == addressMembers && profile == Busy):
		return programmed
	case id.root == loadBalancerKind && id.child == nil && m == noMembers:
		return instant
	case id.root == networkInterfaceKind && machines:
		return attached
	}
	return own
}

// draw is one duration in seconds, log-normal.
func (s spread) draw(random *rand.Rand) float64 {
	if s.median == 0 || s.p90 <= s.median {
		return s.median
	}
	const z90 = 1.2816 // nine of ten of a normal distribution are below it
	return min(s.median*math.Exp(math.Log(s.p90/s.median)/z90*random.NormFloat64()), s.most)
}

// latency draws from the seeded model.
func (e *Emulator) latency(s spread) time.Duration {
	seconds := s.median
	if !e.opts.LatencyFixed {
		seconds = s.draw(e.random)
	}
	return time.Duration(seconds * e.opts.LatencyScale * float64(time.Second))
}

// pollEvery is what Retry-After asks of pollers at latency scale 1, where no type says other.
const pollEvery = 10 * time.Second

// pollsAfter is the Retry-After of an accepted write.
func (e *Emulator) pollsAfter(id resourceID, kind Kind, isNew bool, root fields) time.Duration {
	every := id.root.pollAfter
	if id.child != nil {
		every = id.child.pollAfter
	}
	if id.root == loadBalancerKind && id.child == nil && isNew && isInternal(root) {
		every = 3 * time.Second
	}
	if kind == KindDelete || every == 0 {
		every = pollEvery
	}
	return e.scaled(every)
}

func (e *Emulator) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * e.opts.LatencyScale)
}

// isInternal tells whether a load balancer has a frontend in a subnet.
func isInternal(root fields) bool {
	for _, f := range objects(properties(root), frontends) {
		if reference(properties(f), "subnet") != "" {
			return true
		}
	}
	return false
}

// membersOf are the members of the pools of a load balancer's body.
func (e *Emulator) membersOf(id resourceID, root fields) members {
	most := noMembers
	for _, pool := range objects(properties(root), pools) {
		for _, a := range entriesOf(e.index(), id.rootID().withChild(poolKind, text(pool, "name")), pool) {
			most = max(most, addressMembers)
			if isNIC(a) {
				return interfaceMembers
			}
		}
	}
	return most
}

// SetLatency changes the profile for operations to come.
func (e *Emulator) SetLatency(profile Latency) error {
	parsed, err := ParseLatency(string(profile))
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opts.Latency = parsed
	return nil
}
