// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Latency is a latency profile of operations.
type Latency string

// The profiles differ for load balancers with IP addresses in their pools.
const (
	// Quiet is recorded without machines behind the addresses. It is the default, for tests of
	// event order and for clouds under construction.
	Quiet Latency = "quiet"
	// Busy is for machines in service: a load balancer with any members is as slow as recorded with
	// network interfaces. Use it for measurements such as lag or drains.
	Busy Latency = "busy"
)

// ParseLatency returns the named profile; empty is Quiet.
func ParseLatency(name string) (Latency, error) {
	switch l := Latency(name); l {
	case "":
		return Quiet, nil
	case Quiet, Busy:
		return l, nil
	}
	return "", fmt.Errorf("latency profile %q is unknown: use %s (recorded without machines) or %s (with machines in service)", name, Quiet, Busy)
}

// spread is a latency distribution in seconds; most is the maximum.
type spread struct{ median, p90, most float64 }

// Latencies that depend on more than the resource type. Medians are the middle of the bounds
// observed by polling.
var (
	programmed = spread{27, 72, 142}    // a load balancer with members to program
	unmanned   = spread{3, 4, 4}        // a load balancer with addresses without a machine
	instant    = spread{}               // a load balancer without members
	attached   = spread{41.5, 72, 198}  // a network interface attached to a machine
	removed    = spread{5, 9, 10}       // a DELETE in Microsoft.Network
	machine    = spread{40, 108, 198}   // a virtual machine
	instance   = spread{15, 30, 30}     // a scale set instance
	upgraded   = spread{45.5, 108, 198} // instances upgraded to the scale set's model
)

// members is the kind of members in a load balancer's pools.
type members int

const (
	noMembers members = iota
	addressMembers
	interfaceMembers
)

// spreadOf returns the latency of a write. members is the slowest kind before or after it; machines
// reports whether the network interface is attached to a machine.
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

// draw returns a random duration in seconds, log-normal.
func (s spread) draw(random *rand.Rand) float64 {
	if s.median == 0 || s.p90 <= s.median {
		return s.median
	}
	const z90 = 1.2816 // 90th percentile of the standard normal distribution
	return min(s.median*math.Exp(math.Log(s.p90/s.median)/z90*random.NormFloat64()), s.most)
}

// latency returns a duration from the seeded model.
func (e *Emulator) latency(s spread) time.Duration {
	seconds := s.median
	if !e.opts.LatencyFixed {
		seconds = s.draw(e.random)
	}
	return time.Duration(seconds * e.opts.LatencyScale * float64(time.Second))
}

// pollEvery is the default Retry-After of an operation at latency scale 1.
const pollEvery = 10 * time.Second

// pollsAfter returns the Retry-After of an accepted write.
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

// isInternal reports whether a load balancer has a frontend in a subnet.
func isInternal(root fields) bool {
	for _, f := range objects(properties(root), frontends) {
		if reference(properties(f), "subnet") != "" {
			return true
		}
	}
	return false
}

// membersOf returns the kind of members in the pools of a load balancer's body.
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

// SetLatency changes the profile for future operations.
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
