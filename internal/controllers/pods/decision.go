// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"slices"
	"time"
)

const (
	// OpenTimeout is how long a gate waits once nothing else keeps the pod from being ready.
	OpenTimeout = 2 * time.Minute
	// LeaderTimeout is how long the leader's Lease is not renewed before standbys open gates.
	LeaderTimeout = time.Minute
	// recheckInterval is the maximum delay until a waiting gate of a pod with ready containers is decided again: Services
	// and BackendPools may change without an event of the pod.
	recheckInterval = 5 * time.Second
)

// Reason is why a gate is open. It is a reason of the pod's condition and a label of the metric.
type Reason string

// The reasons with which the gate has what it is for: the pod's node takes its flows, or none can arrive.
const (
	InPool    Reason = "InPool"    // the node is in every pool
	NoService Reason = "NoService" // no Service of Weir selects the pod
	NoAddress Reason = "NoAddress" // a Service that selects it has no address yet
	AnyNode   Reason = "AnyNode"   // kube-proxy of any node sends flows to the pod: externalTrafficPolicy is Cluster
)

// The reasons with which the gate opens although the node may be missing in a pool.
const (
	NoProbe       Reason = "NoProbe"       // no probe of a rule shows whether the Service serves on the node
	Paused        Reason = "Paused"        // Weir leaves the pool unchanged
	DryRun        Reason = "DryRun"        // Weir leaves everything of the Service unchanged
	Foreign       Reason = "Foreign"       // the pool is not the Service's to write
	Rejected      Reason = "Rejected"      // Weir does not apply the Service's settings
	Contested     Reason = "Contested"     // another controller keeps undoing Weir's writes
	NodeNotMember Reason = "NodeNotMember" // the node cannot become a member before the pod is ready
	NodeDown      Reason = "NodeDown"      // the node leaves, so its member is Down
	Timeout       Reason = "Timeout"       // it was not in every pool within OpenTimeout
	LeaderAway    Reason = "LeaderAway"    // no leader renews its Lease
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{InPool, NoService, NoAddress, AnyNode, NoProbe, Paused, DryRun, Foreign, Rejected, Contested, NodeNotMember, NodeDown, Timeout, LeaderAway}
}

// FailsOpen reports whether a gate with this reason opened without proof that the node takes the pod's flows.
func (r Reason) FailsOpen() bool {
	return r != InPool && r != NoService && r != NoAddress && r != AnyNode
}

// Pod is the pod of a gate.
type Pod struct {
	// Node is empty until the pod is scheduled.
	Node string
	// IsOpen is true once the gate's condition is true.
	IsOpen bool
	// SeenSince is when the gate was first seen.
	SeenSince time.Time
	// WaitingSince is when everything but the gate was first seen ready; zero if it is not.
	WaitingSince time.Time
}

// Service is a Service that selects the pod, and has or may get a load balancer of Weir or a BackendPool.
type Service struct {
	Name string
	// Blocked is why the Service's load balancer is left unchanged: DryRun, Rejected or Contested; else empty.
	Blocked Reason
	// HasAddress is true if its status has an address.
	HasAddress bool
	// IsLocal is true if only nodes with a pod of the Service serve it.
	IsLocal bool
	// HasProbes is true if every rule of the Service has a probe that shows whether the Service serves on a node.
	HasProbes bool
	// Pools are those of its rules. IsKnown is false while this process has not seen its rules in Azure.
	Pools   []Pool
	IsKnown bool
}

// Pool is what is known of the pod's node in a pool.
type Pool struct {
	Name string
	// Blocked is why Weir does not write the pool: Paused, DryRun, Foreign or Contested; else empty.
	Blocked Reason
	// IsMember is true if the last read showed the node in the pool, and not Down.
	IsMember bool
	// IsDesired is true if the node belongs in the pool at present. IsDown is true if its member must be Down.
	IsDesired, IsDown bool
	// JoinsEarly is true if a node joins the pool before a pod there is ready, see Set.EarlyJoin. If it were wrongly true,
	// the gate would wait for a membership that needs a ready pod.
	JoinsEarly bool
}

// Leader is what a process knows of the leader of all processes.
type Leader struct {
	// Leads is true in the leader.
	Leads bool
	// RenewedAt is when this process last saw the Lease change, or began to watch it.
	RenewedAt time.Time
}

// Decision is the decision about a gate. If it does not open, it is decided again after RecheckAfter, or never if
// that is zero.
type Decision struct {
	Opens        bool
	Reason       Reason
	Message      string
	RecheckAfter time.Duration
}

// Decide decides about the gate of a pod. services must be those of the pod's namespace that select it.
func Decide(pod Pod, services []Service, leader Leader, now time.Time) Decision {
	switch {
	case pod.IsOpen, pod.Node == "":
		return Decision{} // an event of the pod follows
	case !leader.Leads:
		return decideStandby(leader, pod.recheckDelay(now), now)
	}
	open, wait := Decision{Opens: true, Reason: NoService, Message: "no Service of Weir selects the pod"}, ""
	for _, s := range services {
		reason, message, waits := s.decide(pod.Node)
		if waits {
			wait = message
			continue
		}
		if precedes(reason, open.Reason) {
			open.Reason, open.Message = reason, message
		}
	}
	if wait == "" {
		return open
	}
	remaining := pod.timeLeft(now)
	if remaining <= 0 {
		return Decision{Opens: true, Reason: Timeout, Message: fmt.Sprintf("after %s: %s", OpenTimeout, wait)}
	}
	return Decision{Message: wait, RecheckAfter: min(remaining, pod.recheckDelay(now))}
}

// recheckDelay grows while the containers of the pod are not ready: an event of the pod precedes its need for an open gate.
func (p Pod) recheckDelay(now time.Time) time.Duration {
	if !p.WaitingSince.IsZero() || p.SeenSince.IsZero() {
		return recheckInterval
	}
	return min(max(now.Sub(p.SeenSince)/2, recheckInterval), OpenTimeout)
}

// precedes reports whether a reason replaces another one in the condition: what explains a missing node first.
func precedes(a, b Reason) bool {
	rank := func(r Reason) int {
		switch {
		case r.FailsOpen():
			return 0
		case r == InPool:
			return 1
		case r == NoService:
			return 3
		}
		return 2
	}
	return rank(a) < rank(b)
}

// timeLeft returns how long the gate may wait. The time does not run while the pod is not ready for other reasons.
func (p Pod) timeLeft(now time.Time) time.Duration {
	if p.WaitingSince.IsZero() {
		return OpenTimeout
	}
	return p.WaitingSince.Add(OpenTimeout).Sub(now)
}

func decideStandby(leader Leader, delay time.Duration, now time.Time) Decision {
	remaining := leader.RenewedAt.Add(LeaderTimeout).Sub(now)
	if remaining > 0 {
		return Decision{Message: "the leader decides", RecheckAfter: min(remaining, delay)} // this process may lead before
	}
	return Decision{Opens: true, Reason: LeaderAway, Message: fmt.Sprintf("no leader of Weir has renewed its Lease for %s", LeaderTimeout)}
}

// decide returns why the gate need not wait for a Service, or what it waits for.
func (s Service) decide(node string) (reason Reason, message string, waits bool) {
	switch {
	case !s.IsLocal:
		return AnyNode, "any node sends flows of Service " + s.Name + " to the pod", false
	case s.IsKnown && len(s.Pools) > 0 && !slices.ContainsFunc(s.Pools, func(p Pool) bool { return !p.IsMember }):
		return InPool, "a read of Azure has shown node " + node + " in every pool", false
	case s.Blocked != "":
		return s.Blocked, "Weir leaves the load balancer of Service " + s.Name + " unchanged", false
	case !s.HasAddress && !s.needsPool(node):
		return NoAddress, "Service " + s.Name + " has no address yet", false
	case !s.HasProbes:
		return NoProbe, "a rule of Service " + s.Name + " has no probe that shows whether the Service serves on a node", false
	case !s.IsKnown:
		return "", "the rules of Service " + s.Name + " have not been read yet", true
	}
	reason, message = Foreign, "the rules of Service "+s.Name+" have no pool of Weir"
	for i, p := range s.Pools {
		r, text, waits := p.decide(node)
		if waits {
			return "", text, true
		}
		if i == 0 || precedes(r, reason) {
			reason, message = r, text
		}
	}
	return reason, message, false
}

// needsPool reports whether a pool of rules that this process has seen in Azure waits for the node: clients may reach
// them before the cache shows the address.
func (s Service) needsPool(node string) bool {
	return s.IsKnown && s.HasProbes && slices.ContainsFunc(s.Pools, func(p Pool) bool {
		_, _, waits := p.decide(node)
		return waits
	})
}

func (p Pool) decide(node string) (reason Reason, message string, waits bool) {
	switch {
	case p.IsMember:
		return InPool, "", false
	case p.Blocked != "":
		return p.Blocked, "Weir does not write pool " + p.Name, false
	case p.IsDown:
		return NodeDown, fmt.Sprintf("node %s leaves, so it is Down in pool %s", node, p.Name), false
	case !p.IsDesired && !p.JoinsEarly:
		return NodeNotMember, fmt.Sprintf("node %s joins pool %s once a pod there is ready", node, p.Name), false
	}
	return "", fmt.Sprintf("no read has shown node %s in pool %s yet", node, p.Name), true
}
