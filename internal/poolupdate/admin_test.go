// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/membership"
)

// inAdminWorld is a world in which addresses are set Down.
func inAdminWorld(t *testing.T, story func(w *world)) {
	inWorldOf(t, Config{MaxRetries: 3, AdminState: true}, story)
}

// expectDown compares what the ledger says is Down by us.
func (w *world) expectDown(want string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := fmt.Sprint(w.down["web"]); got != "["+want+"]" {
		w.t.Errorf("the ledger says that %s are Down, want [%s]", got, want)
	}
}

// A change of the members carries the admin states along. What becomes Down is recorded
// before the write, and taken out of the record after the one that takes it back.
func TestDownIsRecordedBeforeItIsWritten(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.pool(web, "n1=10.0.0.1 n2=10.0.0.2/Down")
		w.change(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectCalls("+250ms GET web", "+250ms RECORD web [10.0.0.1 10.0.0.2] Down [10.0.0.1]",
			"+250ms PUT web n1=10.0.0.1/Down n2=10.0.0.2/Down")
		w.expectDown("10.0.0.1")
		if !w.lanes.LevelAs(web, membership.Fingerprint(addresses("n1=10.0.0.1/Down n2=10.0.0.2"))) {
			t.Error("it is not known to be level")
		}
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectPool(web, "n1=10.0.0.1/None n2=10.0.0.2/Down")
		w.expectDown("")
	})
}

// A write of Down that got lost may land after the node has ceased to leave: it is fenced
// off, also by a process that knows of it from the ledger alone.
func TestALostDownCannotLandLater(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		inAdminWorld(t, func(w *world) {
			w.level(web)
			w.failing("PUT", 1, fault.Answer{OutcomeUnknown: true})
			w.change(web, "n1=10.0.0.1/Down")
			w.wait(time.Second)
			w.expectDown("10.0.0.1")
			before := w.pools[web.Key()].Etag
			if restarted {
				defer w.die()()
			}
			w.change(web, "n1=10.0.0.1")
			w.wait(2 * interval)
			if w.pools[web.Key()].Etag == before {
				t.Errorf("restarted %v: the lost write still has a valid etag", restarted)
			}
			w.expectDown("")
		})
	}
}

// Without the setting a write leaves admin states as they are, and what was left Down stays
// known until its address goes.
func TestWithoutTheSettingAdminStatesAreLeftAlone(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.ledger["web"], w.taken["web"] = sortedIPs(addresses("n1=10.0.0.1 n2=10.0.0.2")), true
		w.down["web"] = sortedIPs(addresses("n1=10.0.0.1"))
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2/Down n3=10.0.0.3/Down")
		w.wait(5 * time.Second)
		w.expectPool(web, "n1=10.0.0.1/Down n2=10.0.0.2 n3=10.0.0.3")
		w.expectDown("10.0.0.1")
		w.change(web, "n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectDown("")
	})
}
