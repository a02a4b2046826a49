// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// after looks at a Service some time later.
func (w *world) after(d time.Duration) time.Duration {
	w.t.Helper()
	w.later += d
	return w.looks()
}

// A Service that has had no endpoints for a while says so, and that it has some at once; what comes
// and goes faster is not written.
func TestAServiceWithoutEndpointsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := served(t)
		w.concluded = 0
		for range 20 { // a pod that is restarted
			w.empty = true
			if again := w.after(emptyAfter / 2); again != emptyAfter {
				t.Errorf("looked at again after %s", again)
			}
			w.empty = false
			w.after(emptyAfter / 2)
		}
		w.has(WhyAccepted, WhyProgrammed, 0)
		w.empty = true
		again := w.after(time.Second)
		if again != emptyAfter {
			t.Errorf("looked at again after %s", again)
		}
		w.has(WhyAccepted, WhyProgrammed, 0)
		if again = w.after(again); again != 0 {
			t.Errorf("it has said so, and is looked at again after %s", again)
		}
		w.has(WhyAccepted, WhyNoEndpoints, 1)
		if v := w.verdicts[TypeProgrammed]; !v.Holds() || strings.Contains(v.Text, "Local") {
			t.Errorf("Azure has what it wants, and its condition is %+v", v)
		}
		for range 5 {
			w.after(emptyAfter)
		}
		w.has(WhyAccepted, WhyNoEndpoints, 0)
		w.empty = false
		w.after(time.Second)
		w.has(WhyAccepted, WhyProgrammed, 1)
	})
}

// A process that begins goes on saying what the last one said, without a write.
func TestThatNothingTakesTrafficOutlivesAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := served(t)
		w.empty, w.s.Object.Local = true, true
		w.looks()
		w.ends()
		w.looks()
		w.after(emptyAfter)
		if v := w.verdicts[TypeProgrammed]; v.Reason != WhyNoEndpoints || !strings.Contains(v.Text, "Local no node takes any") {
			t.Errorf("%+v", v)
		}
		next := newWorld(t)
		next.s, next.verdicts, next.empty = w.s, w.verdicts, true
		next.looks()
		next.has(WhyAccepted, WhyNoEndpoints, 0)
		next.ends()
		next.looks()
		next.has(WhyAccepted, WhyNoEndpoints, 0)
		next.empty = false
		next.looks()
		next.has(WhyAccepted, WhyProgrammed, 1)
	})
}

// A Service whose pool is empty in Azure though nodes are to be in it serves nobody, whatever Azure has besides.
func TestAServiceWithAnEmptyPoolIsNotProgrammed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := served(t)
		w.emptyPool = "kubernetes"
		if again := w.after(time.Second); again != emptyAfter {
			t.Errorf("looked at again after %s", again)
		}
		w.has(WhyAccepted, WhyProgrammed, 3) // a pool that is being filled is no news
		if again := w.after(emptyAfter); again != emptyAfter {
			t.Errorf("looked at again after %s", again)
		}
		w.has(WhyAccepted, WhyPoolEmpty, 1)
		if v := w.verdicts[TypeProgrammed]; v.Holds() || !strings.Contains(v.Text, "Backend pool kubernetes has no members") {
			t.Errorf("its condition is %+v", v)
		}
		w.emptyPool = ""
		if again := w.after(emptyAfter); again != 0 {
			t.Errorf("looked at again after %s", again)
		}
		w.has(WhyAccepted, WhyProgrammed, 1)
	})
}
