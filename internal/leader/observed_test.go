// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"testing"
	"testing/synctest"
	"time"
)

// Only a change of the Lease is a renewal: an old Lease read again is not, nor is a failed read.
func TestRenewalsOfAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		f := NewFence(window, virtual())
		time.Sleep(time.Minute)
		if got := f.SinceRenewed(); got != time.Minute {
			t.Errorf("nothing was read: %s", got)
		}
		f.RecordObserved("renewed at 1")
		time.Sleep(5 * time.Second)
		f.RecordObserved("renewed at 1")
		if got := f.SinceRenewed(); got != 5*time.Second {
			t.Errorf("the same Lease was read: %s", got)
		}
		f.RecordObserved("renewed at 2")
		if got := f.SinceRenewed(); got != 0 {
			t.Errorf("it was renewed: %s", got)
		}
	})
	(*Fence)(nil).RecordObserved("there is no election")
}
