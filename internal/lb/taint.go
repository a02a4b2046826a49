// SPDX-License-Identifier: Apache-2.0

package lb

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

// NodeTaint is a taint of a node. Its effect is ignored, because it concerns pods.
type NodeTaint struct{ Key, Value string }

// ConditionPattern matches taints by key, or by key and value.
type ConditionPattern struct {
	Key, Value string
	// AnyValue ignores the value.
	AnyValue bool
}

// fixedPatterns is in the order of the reasons.
var fixedPatterns = []ConditionPattern{
	{Key: KeyOutOfService, AnyValue: true}, {Key: KeyDraining, Value: ValueSpotEviction},
	{Key: keyToBeDeleted, AnyValue: true}, {Key: keyDisrupted, AnyValue: true},
}

// ParseConditionPattern parses "key" or "key=value".
func ParseConditionPattern(text string) (ConditionPattern, error) {
	key, value, valued := strings.Cut(text, "=")
	if key == keyUnschedulable {
		return ConditionPattern{}, fmt.Errorf("%s stops new pods, not traffic: remove it", key)
	}
	return ConditionPattern{Key: key, Value: value, AnyValue: !valued}, nil
}

// Reason returns the name of a pattern in events and metrics.
func (p ConditionPattern) Reason() string {
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

func (p ConditionPattern) matchesTaint(t NodeTaint) bool {
	return t.Key == p.Key && (p.AnyValue || t.Value == p.Value)
}

// ParseConditionType checks the type of a condition that marks a leaving node while its status is True.
func ParseConditionType(text string) (string, error) {
	if text == conditionReady {
		return "", fmt.Errorf("%s is True on nodes that serve: remove it", text)
	}
	return text, nil
}

// NodeState is the part of a node that decides whether it is leaving.
type NodeState struct {
	Taints     []NodeTaint
	Conditions []NodeCondition
	Deleting   bool
}

// DrainSignals configures which nodes are leaving.
type DrainSignals struct {
	ExtraPatterns []ConditionPattern
	// ExtraConditions are condition types, such as those of KEP-5683.
	ExtraConditions []string
	// Reporters are trusted; none if empty.
	Reporters []string
	// MinAvailablePercent is the share of members, at least one, that announced evictions leave in
	// service; 0 means none.
	MinAvailablePercent int
}

// DrainReasons returns why a node must take no new flows, in a fixed order; empty if it may.
func (s DrainSignals) DrainReasons(n NodeState) (reasons []string) {
	if len(n.Taints) > 0 || len(n.Conditions) > 0 { // called for each node whenever a pool is computed
		reasons = s.filterReasons(
			func(p ConditionPattern) bool { return slices.ContainsFunc(n.Taints, p.matchesTaint) },
			func(condition string) bool {
				return slices.ContainsFunc(n.Conditions, func(c NodeCondition) bool { return c.Type == condition && c.Status == conditionTrue })
			})
	}
	if n.Deleting { // it never serves again
		reasons = append(reasons, ReasonDeleting)
	}
	return reasons
}

// IsSpotEviction reports whether the spot eviction taint is the only one of the reasons.
func IsSpotEviction(reasons []string) bool {
	return len(reasons) == 1 && reasons[0] == ValueSpotEviction
}

// IsAtOnce reports whether one of the reasons makes even the last member that takes new flows drain: the node is shut down,
// or evicted within seconds, or the signal is configured by an operator.
func (s DrainSignals) IsAtOnce(reasons []string) bool {
	return slices.ContainsFunc(reasons, func(reason string) bool {
		return reason != ReasonDeleting && !slices.ContainsFunc(fixedPatterns[2:], func(p ConditionPattern) bool { return p.Reason() == reason })
	})
}

// AllReasons returns the reasons of all taints and conditions.
func (s DrainSignals) AllReasons() []string {
	return s.filterReasons(func(ConditionPattern) bool { return true }, func(string) bool { return true })
}

func (s DrainSignals) filterReasons(hasTaint func(ConditionPattern) bool, hasCondition func(string) bool) (reasons []string) {
	add := func(reason string) {
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	for _, p := range slices.Concat(fixedPatterns, s.ExtraPatterns) {
		if hasTaint(p) {
			add(p.Reason())
		}
	}
	for _, condition := range s.ExtraConditions {
		if hasCondition(condition) {
			add(condition)
		}
	}
	return reasons
}
