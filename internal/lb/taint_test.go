// SPDX-License-Identifier: Apache-2.0

package lb_test

import (
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

// taints parses "key=value key".
func taints(text string) (items []lb.NodeTaint) {
	for _, t := range strings.Fields(text) {
		key, value, _ := strings.Cut(t, "=")
		items = append(items, lb.NodeTaint{Key: key, Value: value})
	}
	return items
}

func signals(t *testing.T, further string) (s lb.DrainSignals) {
	t.Helper()
	for _, text := range strings.Fields(further) {
		p, err := lb.ParseConditionPattern(text)
		if err != nil {
			t.Fatal(err)
		}
		s.ExtraPatterns = append(s.ExtraPatterns, p)
	}
	return s
}

func TestLeaveTaints(t *testing.T) {
	const (
		oos  = "node.kubernetes.io/out-of-service"
		spot = "cloudprovider.azure.microsoft.com/draining=spot-eviction"
	)
	for _, tt := range []struct{ taints, further, want string }{
		{"", "", ""},
		{oos, "", "out-of-service"},
		{oos + "=nodeshutdown", "", "out-of-service"},
		{spot, "", "spot-eviction"},
		{spot + " " + oos, "", "out-of-service spot-eviction"},
		{"cloudprovider.azure.microsoft.com/draining", "", ""},
		{"cloudprovider.azure.microsoft.com/draining=upgrade", "", ""},
		{"example.com/out-of-service spot-eviction", "", ""},
		{"node.kubernetes.io/unschedulable node.kubernetes.io/not-ready node.kubernetes.io/unreachable", "", ""},
		{"ToBeDeletedByClusterAutoscaler=1700000000", "", "ToBeDeletedByClusterAutoscaler"},
		{"ToBeDeletedByClusterAutoscaler=1700000000", "ToBeDeletedByClusterAutoscaler", "ToBeDeletedByClusterAutoscaler"},
		{"karpenter.sh/disrupted", "", "karpenter.sh/disrupted"},
		{"karpenter.sh/disrupted=", "karpenter.sh/disrupted", "karpenter.sh/disrupted"},
		{"DeletionCandidateOfClusterAutoscaler=1700000000 karpenter.sh/unregistered", "", ""},
		{"karpenter.sh/disrupted " + oos + " ToBeDeletedByClusterAutoscaler", "", "out-of-service ToBeDeletedByClusterAutoscaler karpenter.sh/disrupted"},
		{"ToBeDeleted=1700000000", "ToBeDeleted", "ToBeDeleted"},
		{"ToBeDeleted", "", ""},
		{"example.com/leaves=soon", "example.com/leaves=now", ""},
		{"example.com/leaves=now", "example.com/leaves=now", "example.com/leaves=now"},
		{"example.com/leaves", "example.com/leaves=", "example.com/leaves="},
		{"b " + spot + " a=1 " + oos, "a b", "out-of-service spot-eviction a b"},
		{"b " + spot + " a=1 " + oos, "b a a", "out-of-service spot-eviction b a"},
		{oos + " " + spot, oos + " " + spot, "out-of-service spot-eviction"},
	} {
		s := signals(t, tt.further)
		reasons := s.DrainReasons(lb.NodeState{Taints: taints(tt.taints)})
		if got := strings.Join(reasons, " "); got != tt.want {
			t.Errorf("%s (further: %s): %q, want %q", tt.taints, tt.further, got, tt.want)
		}
		atOnce := slices.ContainsFunc(reasons, func(r string) bool { return r != "ToBeDeletedByClusterAutoscaler" && r != "karpenter.sh/disrupted" })
		if s.IsAtOnce(reasons) != atOnce {
			t.Errorf("%s (further: %s): at once: %v", tt.taints, tt.further, !atOnce)
		}
	}
	if got := strings.Join(signals(t, "b a=1 b").AllReasons(), " "); got != "out-of-service spot-eviction ToBeDeletedByClusterAutoscaler karpenter.sh/disrupted b a=1" {
		t.Errorf("all reasons: %s", got)
	}
}

// A condition counts while it is True, after the taints, and only if it is configured.
func TestLeaveConditions(t *testing.T) {
	s := signals(t, "leaves")
	s.ExtraConditions = []string{"DrainInProgress", "MaintenanceInProgress", "leaves"}
	for _, tt := range []struct {
		node lb.NodeState
		want string
	}{
		{lb.NodeState{Conditions: conditions("Ready=True DrainInProgress=False MaintenanceInProgress=Unknown Drained=True")}, ""},
		{lb.NodeState{Conditions: conditions("Ready=True MaintenanceInProgress=True DrainInProgress=True")}, "DrainInProgress MaintenanceInProgress"},
		{lb.NodeState{Conditions: conditions("DrainInProgress=True leaves=True"), Taints: taints("leaves karpenter.sh/disrupted"), Deleting: true}, "karpenter.sh/disrupted leaves DrainInProgress deleting"},
		{lb.NodeState{Taints: taints("DrainInProgress")}, ""},
	} {
		reasons := s.DrainReasons(tt.node)
		if got := strings.Join(reasons, " "); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.node, got, tt.want)
		}
	}
	if got := (lb.DrainSignals{}).DrainReasons(lb.NodeState{Conditions: conditions("DrainInProgress=True")}); got != nil {
		t.Errorf("not configured: %q", got)
	}
	if got := strings.Join(s.AllReasons(), " "); !strings.HasSuffix(got, " leaves DrainInProgress MaintenanceInProgress") {
		t.Errorf("all reasons: %s", got)
	}
}

// conditions parses "type=status type=status".
func conditions(text string) (items []lb.NodeCondition) {
	for _, t := range strings.Fields(text) {
		name, status, _ := strings.Cut(t, "=")
		items = append(items, lb.NodeCondition{Type: name, Status: status, Message: "a drain"})
	}
	return items
}

// A cordon is not a drain, in any form.
func TestUnschedulableIsNeverASignal(t *testing.T) {
	for _, text := range []string{"node.kubernetes.io/unschedulable", "node.kubernetes.io/unschedulable=", "node.kubernetes.io/unschedulable=x"} {
		if _, err := lb.ParseConditionPattern(text); err == nil || !strings.Contains(err.Error(), "node.kubernetes.io/unschedulable stops") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
