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

// The profiles differ for pools of IP addresses.
const (
	// Quiet is recorded without machines behind the addresses, for tests of event order.
	Quiet Latency = "quiet"
	// Busy is recorded with machines in service, for measurements such as lag or drains.
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

// latencyRange is in seconds.
type latencyRange struct{ median, p90, maximum float64 }

// Medians are the middle of the bounds observed by polling.
var (
	memberLatency   = latencyRange{27, 72, 142}   // a load balancer with members to program
	addressLatency  = latencyRange{3, 4, 4}       // a load balancer with addresses without a machine
	noLatency       = latencyRange{}              // a load balancer without members
	attachedLatency = latencyRange{41.5, 72, 198} // a network interface attached to a machine
	deleteLatency   = latencyRange{5, 9, 10}      // a DELETE in Microsoft.Network
	machine         = latencyRange{40, 108, 198}
	instanceLatency = latencyRange{15, 30, 30}
	upgradeLatency  = latencyRange{45.5, 108, 198} // instances upgraded to the scale set's model
)

type memberKind int

const (
	noMembers memberKind = iota
	addressMembers
	interfaceMembers
)

// writeLatency: m is the slowest kind before or after the write; machines is true for an attached
// network interface.
func writeLatency(id resourceID, kind Kind, profile Latency, m memberKind, machines bool) latencyRange {
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
		return memberLatency
	case id.root == loadBalancerKind && id.child == nil && m == noMembers:
		return noLatency
	case id.root == networkInterfaceKind && machines:
		return attachedLatency
	}
	return own
}

// sample is log-normal.
func (l latencyRange) sample(random *rand.Rand) float64 {
	if l.median == 0 || l.p90 <= l.median {
		return l.median
	}
	const z90 = 1.2816 // 90th percentile of the standard normal distribution
	return min(l.median*math.Exp(math.Log(l.p90/l.median)/z90*random.NormFloat64()), l.maximum)
}

func (e *Emulator) sampleLatency(s latencyRange) time.Duration {
	seconds := s.median
	if !e.opts.LatencyFixed {
		seconds = s.sample(e.random)
	}
	return time.Duration(seconds * e.opts.LatencyScale * float64(time.Second))
}

// pollInterval is the default at latency scale 1.
const pollInterval = 10 * time.Second

func (e *Emulator) pollInterval(id resourceID, kind Kind, isNew bool, root fields) time.Duration {
	every := id.root.pollAfter
	if id.child != nil {
		every = id.child.pollAfter
	}
	if id.root == loadBalancerKind && id.child == nil && isNew && isInternal(root) {
		every = 3 * time.Second
	}
	if kind == KindDelete || every == 0 {
		every = pollInterval
	}
	return e.scaleDuration(every)
}

func (e *Emulator) scaleDuration(d time.Duration) time.Duration {
	return time.Duration(float64(d) * e.opts.LatencyScale)
}

func isInternal(root fields) bool {
	for _, f := range objectList(propertyFields(root), frontends) {
		if referenceID(propertyFields(f), "subnet") != "" {
			return true
		}
	}
	return false
}

func (e *Emulator) poolMemberKind(id resourceID, root fields) memberKind {
	kind := noMembers
	for _, pool := range objectList(propertyFields(root), pools) {
		for _, a := range poolEntries(e.references(), id.rootID().withChild(poolKind, stringField(pool, "name")), pool) {
			kind = max(kind, addressMembers)
			if isNIC(a) {
				return interfaceMembers
			}
		}
	}
	return kind
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
