// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/leader"
)

const election = "weir-system/weir-controller"

func leads(in leader.Epoch) *leader.Fence {
	f := leader.NewFence(time.Hour, func() time.Duration { return 0 })
	f.RecordRenew(in, 0)
	return f
}

// Which replica may take the Lease from another one within its term.
func TestReplicaSuccession(t *testing.T) {
	deposed := leads(leader.Epoch{Lease: election, TransitionCount: 9})
	deposed.EndTerm(errAPI)
	for _, tt := range []struct {
		name          string
		holder, epoch string
		fence         *leader.Fence
		free          bool
	}{
		{"a later leader, from one that was killed", "weir-controller_a", election + " 3", leads(leader.Epoch{Lease: election, TransitionCount: 4}), true},
		{"a leader many epochs later", "weir-controller_a", election + " 3", leads(leader.Epoch{Lease: election, TransitionCount: 9}), true},
		{"the leader before, from its successor", "weir-controller_a", election + " 3", leads(leader.Epoch{Lease: election, TransitionCount: 2}), false},
		{"the same epoch: the leader's lease was made anew", "weir-controller_a", election + " 3", leads(leader.Epoch{Lease: election, TransitionCount: 3}), false},
		{"the leader of another election", "weir-controller_a", "other/weir-controller 3", leads(leader.Epoch{Lease: election, TransitionCount: 4}), false},
		{"one that was deposed", "weir-controller_a", election + " 3", deposed, false},
		{"one that does not lead yet", "weir-controller_a", election + " 3", leader.NewFence(time.Hour, func() time.Duration { return 0 }), false},
		{"one without an election", "weir-controller_a", election + " 3", nil, false},
		{"from one without an election", "weir-controller_a", "", leads(leader.Epoch{Lease: election, TransitionCount: 4}), false},
		{"from one whose epoch nobody can read", "weir-controller_a", election + " three", leads(leader.Epoch{Lease: election, TransitionCount: 4}), false},
		{"from another client, whose note of us is old", "cloud-controller-manager", election + " 3", leads(leader.Epoch{Lease: election, TransitionCount: 4}), false},
		{"itself", "weir-controller_b", "", nil, true},
	} {
		now := time.Now()
		stands := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &tt.holder, LeaseDurationSeconds: new(int32(900)), RenewTime: new(metav1.NewMicroTime(now)),
		}}
		if tt.epoch != "" {
			stands.Annotations = map[string]string{epochAnnotation: tt.epoch}
		}
		l := &ResourceLease{holder: "weir-controller_b", fence: tt.fence}
		if err := l.checkHolder(stands, now); (err == nil) != tt.free {
			t.Errorf("%s: %v, want it free: %t", tt.name, err, tt.free)
		}
	}
}

// An acquisition writes holder and epoch, and removes an old epoch.
func TestLeaseRecordOfAReplica(t *testing.T) {
	old := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{epochAnnotation: election + " 3"}}}
	for want, fence := range map[string]*leader.Fence{election + " 4": leads(leader.Epoch{Lease: election, TransitionCount: 4}), "": nil} {
		got := (&ResourceLease{holder: "weir-controller_b", fence: fence}).withHolder(old, time.Now())
		if holderOf(got) != "weir-controller_b" || got.Annotations[epochAnnotation] != want || got.Annotations[previousHolderAnnotation] != holderPrefix {
			t.Errorf("%v, %v", got.Spec, got.Annotations)
		}
	}
}
