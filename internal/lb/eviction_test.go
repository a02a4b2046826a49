// SPDX-License-Identifier: Apache-2.0

package lb_test

import (
	"testing"

	"weir.dev/weir/internal/lb"
)

// The reporter is checked first, then the message.
func TestTrustedReporters(t *testing.T) {
	const aks = "custom-scheduledevents-consolidated-preempt-plugin-monitor"
	for _, tt := range []struct {
		name, reporter, message string
		reporters               []string
		want                    bool
	}{
		{"AKS", aks, "Scheduled: Wed, 26 Feb 2025 10:13:13 GMT. DurationInSeconds: -1.", lb.DefaultReporters(), true},
		{"a detector of one's own", "node-problem-detector", "soon", lb.DefaultReporters(), true},
		{"a setting replaces those", aks, "soon", []string{"example.com/agent"}, false},
		{"one that a setting names", "example.com/agent", "soon", []string{"example.com/agent"}, true},
		{"another client", "kubectl", "soon", lb.DefaultReporters(), false},
		{"nobody", "", "soon", lb.DefaultReporters(), false},
		{"other capitals are another name", "Node-Problem-Detector", "soon", lb.DefaultReporters(), false},
		{"a part of a name is another name", aks + "-2", "soon", lb.DefaultReporters(), false},
		{"none may", aks, "soon", nil, false},
		{"the metadata service did not answer", aks, "IMDS query failed, exit code: 28\nConnection timed out after 24 seconds.", lb.DefaultReporters(), false},
	} {
		signals := lb.DrainSignals{Reporters: tt.reporters}
		if got := signals.IsTrusted(lb.EvictionReport{Reporter: tt.reporter, Message: tt.message}); got != tt.want {
			t.Errorf("%s: believed %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestSingleAnnouncements(t *testing.T) {
	s := lb.DrainSignals{ExtraPatterns: []lb.ConditionPattern{{Key: "leaves", AnyValue: true}}}
	const spot = lb.KeyDraining + "=" + lb.ValueSpotEviction
	for text, want := range map[string]bool{
		"":                              false,
		spot:                            true,
		spot + " gpu=a100":              true,
		spot + " leaves=now":            false, // set by a user
		spot + " " + lb.KeyOutOfService: false,
		lb.KeyOutOfService:              false,
		"leaves":                        false,
	} {
		if got := lb.IsSpotEviction(s.DrainReasons(lb.NodeState{Taints: taints(text)})); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestHandledEvents(t *testing.T) {
	received := lb.SeenEvents{}
	received.AddEvent(again("a", 10, 70))
	for _, tt := range []struct {
		name  string
		event lb.TaintEvent
		want  bool
	}{
		{"the same", again("a", 10, 70), true},
		{"an earlier one of that event", once("a", 10), true},
		{"a later one of that event", again("a", 10, 80), false},
		{"one counted higher in the same second", func() lb.TaintEvent { e := again("a", 10, 70); e.Count = 3; return e }(), false},
		{"another event", once("b", 10), false},
	} {
		if got := received.HasEvent(tt.event); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestEvictionConditions(t *testing.T) {
	for _, tt := range []struct {
		name      string
		condition lb.NodeCondition
		want      bool
	}{
		{"AKS", lb.NodeCondition{Type: "PreemptionScheduled", Status: "True", Message: "Preempt Scheduled: Sat, 01 Aug 2026 05:41:02 GMT."}, true},
		{"another reason", lb.NodeCondition{Type: "PreemptionScheduled", Status: "True"}, true},
		{"nothing is scheduled", lb.NodeCondition{Type: "PreemptionScheduled", Status: "False"}, false},
		{"nothing is known", lb.NodeCondition{Type: "PreemptionScheduled", Status: "Unknown"}, false},
		{"the metadata service did not answer", lb.NodeCondition{Type: "PreemptionScheduled", Status: "True", Message: "IMDS query failed, exit code: 28"}, false},
		{"an older AKS", lb.NodeCondition{Type: "VMEventScheduled", Status: "True", Message: "Preempt Scheduled: Wed, 26 Feb 2025 10:13:13 GMT. DurationInSeconds: -1."}, true},
		{"a freeze", lb.NodeCondition{Type: "VMEventScheduled", Status: "True", Message: "Freeze Scheduled: Wed, 26 Feb 2025 10:13:13 GMT. DurationInSeconds: 5."}, false},
		{"a preemption that is over", lb.NodeCondition{Type: "VMEventScheduled", Status: "False", Message: "Preempt Scheduled"}, false},
		{"ready", lb.NodeCondition{Type: "Ready", Status: "True"}, false},
		{"other capitals", lb.NodeCondition{Type: "preemptionscheduled", Status: "True"}, false},
	} {
		if got := tt.condition.IsEviction(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
