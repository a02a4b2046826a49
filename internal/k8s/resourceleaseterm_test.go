// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A holder not seen renewing for a term is expired, whatever its clock.
func TestAHolderWhoseClockIsAheadIsGoneAfterATermAsWeSeeIt(t *testing.T) {
	start := time.Now()
	stands := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("cloud-controller-manager"), LeaseDurationSeconds: new(int32(900)),
	}}
	renewed := start.Add(24 * time.Hour) // by its clock
	l := &ResourceLease{}
	for _, step := range []struct {
		at     time.Duration
		renews bool
		holder string
		free   bool
	}{
		{at: 0},
		{at: 14 * time.Minute},
		{at: 14*time.Minute + time.Second, renews: true}, // still running
		{at: 16 * time.Minute},
		{at: 29 * time.Minute},
		{at: 29*time.Minute + time.Second, free: true},
		{at: 30 * time.Minute, holder: "another"}, // same instant
		{at: 44 * time.Minute},
		{at: 45 * time.Minute, free: true},
	} {
		if step.renews {
			renewed = renewed.Add(time.Minute)
		}
		if step.holder != "" {
			stands.Spec.HolderIdentity = &step.holder
		}
		stands.Spec.RenewTime = new(metav1.NewMicroTime(renewed))
		if err := l.checkHolder(stands, start.Add(step.at)); (err == nil) != step.free {
			t.Errorf("+%s: %v, want it free: %v", step.at, err, step.free)
		}
	}
}
