// SPDX-License-Identifier: Apache-2.0

package adminstate

import (
	"fmt"
	"slices"
	"strings"
)

// The taints that always say that a node leaves. Their names are a contract: users and
// tools of the Azure cloud provider know them.
const (
	KeyOutOfService = "node.kubernetes.io/out-of-service"
	KeyDraining     = "cloudprovider.azure.microsoft.com/draining"
	// ValueSpotEviction is the value of KeyDraining on a node that Azure is about to evict.
	ValueSpotEviction = "spot-eviction"
	// keyToBeDeleted is the taint of the cluster autoscaler on a node that it is about to delete.
	// Kubernetes' service controller and other load balancer controllers know it, too.
	keyToBeDeleted = "ToBeDeletedByClusterAutoscaler"
	// keyDisrupted is the taint of Karpenter on a node whose pods it is about to evict.
	keyDisrupted = "karpenter.sh/disrupted"
)

// keyUnschedulable is the taint of a cordon. It says that no new pods are to come, not that
// traffic is to leave, and comes and goes with every upgrade.
const keyUnschedulable = "node.kubernetes.io/unschedulable"

// Taint is a taint of a node. Its effect is about pods, and makes no difference here.
type Taint struct{ Key, Value string }

// Pattern matches taints: those of a key, or of a key and one value.
type Pattern struct {
	Key, Value string
	// AnyValue has the value make no difference.
	AnyValue bool
}

// always are the patterns that no setting takes away, in the order of their reasons.
var always = []Pattern{
	{Key: KeyOutOfService, AnyValue: true}, {Key: KeyDraining, Value: ValueSpotEviction},
	{Key: keyToBeDeleted, AnyValue: true}, {Key: keyDisrupted, AnyValue: true},
}

// ParsePattern reads "key" or "key=value".
func ParsePattern(text string) (Pattern, error) {
	key, value, valued := strings.Cut(text, "=")
	if key == keyUnschedulable {
		return Pattern{}, fmt.Errorf("%s says that no new pods are to come, not that traffic is to leave: remove it", key)
	}
	return Pattern{Key: key, Value: value, AnyValue: !valued}, nil
}

// Reason names a pattern in events and metrics.
func (p Pattern) Reason() string {
	switch {
	case p == always[0]:
		return "out-of-service"
	case p == always[1]:
		return ValueSpotEviction
	case p.AnyValue:
		return p.Key
	}
	return p.Key + "=" + p.Value
}

func (p Pattern) matches(t Taint) bool {
	return t.Key == p.Key && (p.AnyValue || t.Value == p.Value)
}

// Signals say which nodes leave.
type Signals struct {
	// Further are the taints that a setting adds.
	Further []Pattern
	// Reporters are whose events are believed; none are nobody's.
	Reporters []string
	// MinAvailablePercent is the share of a pool's members that announced evictions leave up,
	// and one at least; 0 is none.
	MinAvailablePercent int
}

// Draining returns why a node with these taints is to take no new flows; nothing if it may.
// The order is always the same.
func (s Signals) Draining(taints []Taint) (reasons []string) {
	if len(taints) == 0 { // most nodes: each is asked for each time that a pool's members are
		return nil
	}
	return s.reasons(func(p Pattern) bool { return slices.ContainsFunc(taints, p.matches) })
}

// Announced reports whether nothing but the taint of a spot eviction says that a node leaves.
// Whoever put it there: by itself it is no more than the announcement that it stands for.
func (s Signals) Announced(taints []Taint) bool {
	reasons := s.Draining(taints)
	return len(reasons) == 1 && reasons[0] == ValueSpotEviction
}

// Reasons returns all that there are.
func (s Signals) Reasons() []string { return s.reasons(func(Pattern) bool { return true }) }

func (s Signals) reasons(holds func(Pattern) bool) (reasons []string) {
	for _, p := range slices.Concat(always, s.Further) {
		if reason := p.Reason(); holds(p) && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}
