// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// after reconciles a Service some time later.
func (w *world) after(d time.Duration) time.Duration {
	w.t.Helper()
	w.later += d
	return w.looks()
}

// Missing endpoints are reported after a while, new ones at once; short gaps are not written.
func TestServiceWithoutEndpointsReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := served(t)
		w.concluded = 0
		for range 20 { // a restarting pod
			w.empty = true
			if requeueAfter := w.after(noEndpointsDelay / 2); requeueAfter != noEndpointsDelay {
				t.Errorf("requeued after %s", requeueAfter)
			}
			w.empty = false
			w.after(noEndpointsDelay / 2)
		}
		w.has(ConditionReasonAccepted, ConditionReasonProgrammed, 0)
		w.empty = true
		requeueAfter := w.after(time.Second)
		if requeueAfter != noEndpointsDelay {
			t.Errorf("requeued after %s", requeueAfter)
		}
		w.has(ConditionReasonAccepted, ConditionReasonProgrammed, 0)
		if requeueAfter = w.after(requeueAfter); requeueAfter != 0 {
			t.Errorf("it has been reported, and is requeued after %s", requeueAfter)
		}
		w.has(ConditionReasonAccepted, ConditionReasonNoEndpoints, 1)
		if v := w.verdicts[TypeProgrammed]; !v.IsTrue() || strings.Contains(v.Text, "Local") {
			t.Errorf("Azure has what it wants, and its condition is %+v", v)
		}
		for range 5 {
			w.after(noEndpointsDelay)
		}
		w.has(ConditionReasonAccepted, ConditionReasonNoEndpoints, 0)
		w.empty = false
		w.after(time.Second)
		w.has(ConditionReasonAccepted, ConditionReasonProgrammed, 1)
	})
}

// A new process repeats the last report without a write.
func TestEmptyPoolStateOutlivesAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := served(t)
		w.empty, w.s.Object.Local = true, true
		w.looks()
		w.ends()
		w.looks()
		w.after(noEndpointsDelay)
		if v := w.verdicts[TypeProgrammed]; v.Reason != ConditionReasonNoEndpoints || !strings.Contains(v.Text, "Local no node receives any") {
			t.Errorf("%+v", v)
		}
		next := newWorld(t)
		next.s, next.verdicts, next.empty = w.s, w.verdicts, true
		next.looks()
		next.has(ConditionReasonAccepted, ConditionReasonNoEndpoints, 0)
		next.ends()
		next.looks()
		next.has(ConditionReasonAccepted, ConditionReasonNoEndpoints, 0)
		next.empty = false
		next.looks()
		next.has(ConditionReasonAccepted, ConditionReasonProgrammed, 1)
	})
}

// A Service whose pool is empty in Azure but should have members is not programmed.
func TestAServiceWithAnEmptyPoolIsNotProgrammed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := served(t)
		w.emptyPool = "kubernetes"
		if requeueAfter := w.after(time.Second); requeueAfter != noEndpointsDelay {
			t.Errorf("requeued after %s", requeueAfter)
		}
		w.has(ConditionReasonAccepted, ConditionReasonProgrammed, 4) // a pool being filled is not reported
		if requeueAfter := w.after(noEndpointsDelay); requeueAfter != noEndpointsDelay {
			t.Errorf("requeued after %s", requeueAfter)
		}
		w.has(ConditionReasonAccepted, ConditionReasonPoolEmpty, 1)
		if v := w.verdicts[TypeProgrammed]; v.IsTrue() || !strings.Contains(v.Text, "Backend pool kubernetes has no members") {
			t.Errorf("its condition is %+v", v)
		}
		w.emptyPool = ""
		if requeueAfter := w.after(noEndpointsDelay); requeueAfter != 0 {
			t.Errorf("requeued after %s", requeueAfter)
		}
		w.has(ConditionReasonAccepted, ConditionReasonProgrammed, 1)
	})
}
