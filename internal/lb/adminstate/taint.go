// SPDX-License-Identifier: Apache-2.0

package adminstate

import (
	"fmt"
	"slices"
	"strings"
)

// Taints that always mark a leaving node. Users and tools of the Azure cloud provider rely on the
// names.
const (
	KeyOutOfService = "node.kubernetes.io/out-of-service"
	KeyDraining     = "cloudprovider.azure.microsoft.com/draining"
	// ValueSpotEviction marks a node that Azure is about to evict.
	ValueSpotEviction = "spot-eviction"
	// keyToBeDeleted is set by the cluster autoscaler. Other load balancer controllers use it as
	// well.
	keyToBeDeleted = "ToBeDeletedByClusterAutoscaler"
	// keyDisrupted is set by Karpenter before it evicts pods.
	keyDisrupted = "karpenter.sh/disrupted"
)

// ReasonDeleting is the drain reason of a node that is being deleted. It has no taint.
const ReasonDeleting = "deleting"

// keyUnschedulable blocks new pods, not traffic, and changes with every upgrade.
const keyUnschedulable = "node.kubernetes.io/unschedulable"

// Taint is a taint of a node. Its effect is ignored, because it concerns pods.
type Taint struct{ Key, Value string }

// Pattern matches taints by key, or by key and value.
type Pattern struct {
	Key, Value string
	// AnyValue ignores the value.
	AnyValue bool
}

// fixedPatterns is in the order of the reasons.
var fixedPatterns = []Pattern{
	{Key: KeyOutOfService, AnyValue: true}, {Key: KeyDraining, Value: ValueSpotEviction},
	{Key: keyToBeDeleted, AnyValue: true}, {Key: keyDisrupted, AnyValue: true},
}

// ParsePattern parses "key" or "key=value".
func ParsePattern(text string) (Pattern, error) {
	key, value, valued := strings.Cut(text, "=")
	if key == keyUnschedulable {
		return Pattern{}, fmt.Errorf("%s stops new pods, not traffic: remove it", key)
	}
	return Pattern{Key: key, Value: value, AnyValue: !valued}, nil
}

// Reason returns the name of a pattern in events and metrics.
func (p Pattern) Reason() string {
	switch {
	case p == fixedPatterns[0]:
		return "out-of-service"
	case p == fixedPatterns[1]:
		return ValueSpotEviction
	case p.AnyValue:
		return p.Key
	}
	return p.Key + "=" + p.Value
}

func (p Pattern) matchesTaint(t Taint) bool {
	return t.Key == p.Key && (p.AnyValue || t.Value == p.Value)
}

// Signals configures which nodes are leaving.
type Signals struct {
	ExtraPatterns []Pattern
	// Reporters are trusted; none if empty.
	Reporters []string
	// MinAvailablePercent is the share of members, at least one, that announced evictions leave in
	// service; 0 means none.
	MinAvailablePercent int
}

// DrainReasons returns why a node must take no new flows, in a fixed order; empty if it may.
func (s Signals) DrainReasons(taints []Taint) (reasons []string) {
	if len(taints) == 0 { // fast path: called for each node whenever a pool is computed
		return nil
	}
	return s.filterReasons(func(p Pattern) bool { return slices.ContainsFunc(taints, p.matchesTaint) })
}

// NodeReasons is DrainReasons for a node that may be being deleted: it never serves again.
func (s Signals) NodeReasons(taints []Taint, deleting bool) []string {
	reasons := s.DrainReasons(taints)
	if deleting {
		reasons = append(reasons, ReasonDeleting)
	}
	return reasons
}

// IsSpotEviction reports whether the spot eviction taint is the only reason.
func (s Signals) IsSpotEviction(taints []Taint) bool {
	reasons := s.DrainReasons(taints)
	return len(reasons) == 1 && reasons[0] == ValueSpotEviction
}

// AllReasons returns the reasons of all taints.
func (s Signals) AllReasons() []string { return s.filterReasons(func(Pattern) bool { return true }) }

func (s Signals) filterReasons(holds func(Pattern) bool) (reasons []string) {
	for _, p := range slices.Concat(fixedPatterns, s.ExtraPatterns) {
		if reason := p.Reason(); holds(p) && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}
