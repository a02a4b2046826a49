// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

// inAdminWorld runs story in a world that manages admin states.
func inAdminWorld(t *testing.T, explanation func(w *world)) {
	inWorldOf(t, Config{MaxRetries: 3, AdminState: true}, explanation)
}

// expectDown compares the recorded Down addresses.
func (w *world) expectDown(want string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := fmt.Sprint(w.down["web"]); got != "["+want+"]" {
		w.t.Errorf("the ledger says that %s are Down, want [%s]", got, want)
	}
}

// A membership write includes the admin states. Down is recorded before the write, and removed from
// the record after the write that resets it.
func TestDownIsRecordedBeforeItIsWritten(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.pool(web, "n1=10.0.0.1 n2=10.0.0.2/Down")
		w.change(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectCalls("+250ms GET web", "+250ms RECORD web [10.0.0.1 10.0.0.2] Down [10.0.0.1]",
			"+250ms PUT web n1=10.0.0.1/Down n2=10.0.0.2/Down")
		w.expectDown("10.0.0.1")
		if !w.lanes.IsInSync(web, membership.Fingerprint(addresses("n1=10.0.0.1/Down n2=10.0.0.2"))) {
			t.Error("it is not known to be in sync")
		}
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectPool(web, "n1=10.0.0.1/None n2=10.0.0.2/Down")
		w.expectDown("")
	})
}

// The BackendPool of a pool that Weir made is deleted together with its record of Down. Its
// successor finds a leaving node Down that no other client has set, and resets it in the end. Nodes
// that others set Down, and other owners' pools, stay unchanged.
func TestTheNextBackendPoolTakesBackWhatIsDown(t *testing.T) {
	for _, alone := range []bool{true, false} {
		inAdminWorld(t, func(w *world) {
			w.alone = alone
			w.pool(web, "n1=10.0.0.1/Down n2=10.0.0.2/Down")
			w.change(web, "n1=10.0.0.1/Down n2=10.0.0.2 n3=10.0.0.3")
			w.wait(100 * time.Millisecond)
			if alone {
				w.set(func() {
					w.fail = func(call string, _ lb.PoolID) error { // recorded before the crash
						if call == "PUT" && w.down["web"] == nil {
							w.t.Error("Down is not on record")
						}
						return nil
					}
				})
			}
			w.wait(5 * time.Second)
			w.drain(web, "n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3")
			w.wait(5 * time.Second)
			if want := "n1=10.0.0.1/None n2=10.0.0.2/Down n3=10.0.0.3"; alone {
				w.expectPool(web, want)
			} else {
				w.expectPool(web, strings.Replace(want, "None", "Down", 1))
			}
			w.expectDown("")
		})
	}
}

// A lost Down may land after the node has stopped leaving. It is invalidated, also by a process
// that only has the record.
func TestALostDownCannotLandLater(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		inAdminWorld(t, func(w *world) {
			w.inSync(web)
			w.failing("PUT", 1, armerror.Failure{ResultUnknown: true})
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

// Without the setting, writes keep admin states, and a recorded Down is kept until the address is
// removed.
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

// A Down that another client has reset is dropped from the record, after a lost write that may set
// it again is invalidated.
func TestWithoutTheSettingWhatWasTakenBackIsForgotten(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "n1=10.0.0.1/None n2=10.0.0.2/Down")
		w.ledger["web"], w.taken["web"] = sortedIPs(addresses("n1=10.0.0.1 n2=10.0.0.2")), true
		w.down["web"] = sortedIPs(addresses("n1=10.0.0.1 n2=10.0.0.2"))
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectDown("10.0.0.2")
		w.expectCalls("+250ms GET web", "+250ms PUT web n1=10.0.0.1/None n2=10.0.0.2/Down")
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectCalls("+5.25s GET web")
	})
}

// drain sets or resets Down for nodes of a pool, and notifies its worker.
func (w *world) drain(id lb.PoolID, members string) {
	op := schedule.Operation{Ref: schedule.Ref{Name: id.Name}, Pool: id, Service: schedule.ServiceName{Name: id.Name}, Admin: true, ChangedAt: time.Now()}
	w.set(func() {
		w.wanted[id.Name] = addresses(members)
		op.Impact = w.stake(id)
	})
	w.lanes.Add(op)
}

// stake returns the impact of an admin state change. The caller holds w.mu.
func (w *world) stake(id lb.PoolID) schedule.Impact {
	var s schedule.Impact
	for _, a := range w.wanted[id.Name] {
		down := slices.Contains(w.down[id.Name], a.IP)
		switch {
		case a.AdminState == lb.Down && !down:
			s.Stopping++
		case a.AdminState != lb.Down && down:
			s.Starting++
		case a.AdminState != lb.Down:
			s.Serving++
		}
	}
	return s
}

// spellAdmin formats the admin states in a report.
func spellAdmin(r Report) string {
	text := ""
	switch {
	case r.Admin && r.AdminAttempted:
		text += " (admin)"
	case r.Admin != r.AdminAttempted:
		text += " (admin too)"
	}
	if len(r.MarkedDown) > 0 {
		text += fmt.Sprint(" Down ", r.MarkedDown)
	}
	if len(r.MarkedUp) > 0 {
		text += fmt.Sprint(" back ", r.MarkedUp)
	}
	if r.AdminFailed {
		text += " admin failed"
	}
	if r.AdminDone {
		text += " admin done"
	}
	return text
}

// puts returns the times of pool writes, in order.
func (w *world) puts() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, call := range w.calls {
		if at, name, ok := strings.Cut(call, " PUT "); ok {
			name, _, _ = strings.Cut(name, " ")
			names = append(names, name+" "+at)
		}
	}
	w.calls = nil
	return strings.Join(names, ", ")
}

// One write covers the draining nodes and the debounced change.
func TestAdminStatesWaitForNothingAndTakeTheMembershipAlong(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.inSync(web)
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(interval)
		w.expectReports("web Written Updated:web (admin) Down [10.0.0.1] admin done")
		if puts := w.puts(); puts != "web +10s" {
			t.Errorf("written %s", puts)
		}
		w.drain(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectReports("web Written (admin) back [10.0.0.1] admin done")
	})
}

// A failure of admin states consumes no retry of a change in the same attempt; it is retried
// without limit and reported once.
func TestAdminStatesHaveABackOffOfTheirOwnAndNoBudget(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.inSync(web)
		w.set(func() { w.calls = nil })
		w.failing("PUT", 8, armerror.Failure{Status: 400})
		w.drain(web, "n1=10.0.0.1/Down")
		w.wait(20 * time.Second)
		// Its own change fails and is given up; the backoff continues.
		w.change(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(80 * time.Second)
		if puts := w.puts(); puts != "web +10s, web +11s, web +13s, web +17s, web +25s, web +30.25s, web +41s, web +1m11s, web +1m41s" {
			t.Errorf("written %s", puts)
		}
		w.expectReports("web Terminal (admin) admin failed", "web Terminal (admin)", "web Terminal (admin)", "web Terminal (admin)",
			"web Terminal (admin)", "web Terminal Failed:web", "web Terminal (admin)", "web Terminal (admin)",
			"web Written Updated:web (admin) Down [10.0.0.1] admin done")
	})
}

// An operation included in an attempt for the other is not charged for its failure.
func TestAFailureIsThatOfWhateverCausedIt(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.inSync(web)
		w.failing("PUT", 3, armerror.Failure{Status: 409})
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(interval / 2) // failed, and due in half an interval
		w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(2 * time.Second)
		w.expectReports("web Retriable Retrying:web", "web Retriable (admin) admin failed", "web Retriable (admin)")
		for _, op := range w.standing(web).ops {
			if op.IsMember() && op.RetryCount != 1 || op.Admin && op.FailedAttempts != 2 || op.Extra {
				t.Errorf("%+v", op)
			}
		}
		w.wait(10 * time.Second)
		w.expectReports("web Written Updated:web (admin) Down [10.0.0.1] admin done")
	})
}

// If members and admin states are both due, both have caused the attempt.
func TestAnAttemptForBothIsOneOfBoth(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.inSync(web)
		w.failing("PUT", 1, armerror.Failure{Status: 409})
		unlock, err := w.lanes.Lock(w.t.Context(), web.LoadBalancer)
		if err != nil {
			t.Fatal(err)
		}
		w.change(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(time.Second)
		unlock()
		w.wait(200 * time.Millisecond)
		w.expectReports("web Retriable Retrying:web (admin too) admin failed")
	})
}

// Retry-After also delays admin states.
func TestAdminStatesWaitForRetryAfter(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.inSync(web)
		w.failingPool("PUT", web, 1, func() armerror.Failure {
			return armerror.Failure{Status: 429, RetryAt: w.start.Add(5 * time.Minute)}
		})
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(time.Second)
		w.puts()
		w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(5 * time.Minute)
		if puts := w.puts(); puts != "web +5m0s" {
			t.Errorf("written %s", puts)
		}
	})
}

func TestAdminStatesOfAPoolThatIsGoneAreDropped(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.drain(web, "n1=10.0.0.1/Down")
		w.wait(5 * time.Minute)
		w.expectReports("web Stale (admin)")
		if n := w.lanes.Backlog().Operations; n != 0 {
			t.Errorf("%d operations wait", n)
		}
	})
}

// A flapping taint queues one operation per pool, which keeps its backoff.
func TestOneAdminOperationAPool(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.inSync(web)
		w.failing("PUT", 3, armerror.Failure{Status: 403})
		w.set(func() { w.calls = nil })
		for i := range 10 {
			w.drain(web, []string{"n1=10.0.0.1/Down", "n1=10.0.0.1"}[i%2])
			if n := len(w.standing(web).ops); n > 1 {
				t.Errorf("%d operations", n)
			}
			w.wait(100 * time.Millisecond)
		}
		w.drain(web, "n1=10.0.0.1/Down")
		w.wait(20 * time.Second)
		if puts := w.puts(); puts != "web +10s, web +11s, web +13s, web +17s" {
			t.Errorf("written %s", puts)
		}
		w.expectPool(web, "n1=10.0.0.1/Down")
	})
}

// A write that failed but had landed is reported once a read shows it. The work of an earlier
// process is not reported again.
func TestDownIsReportedOnce(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.inSync(web)
		w.set(func() {
			w.fail = func(call string, id lb.PoolID) error {
				if call != "PUT" {
					return nil
				}
				w.fail = func(string, lb.PoolID) error { return nil }
				w.pools[id.Key()] = &lb.Pool{ID: id, Etag: "9", Addresses: addresses("n1=10.0.0.1/Down")}
				return armerror.Classify(armerror.Failure{ResultUnknown: true}, errors.New("connection reset"))
			}
		})
		w.drain(web, "n1=10.0.0.1/Down")
		w.wait(20 * time.Second)
		w.expectReports("web Retriable (admin) admin failed", "web Unchanged (admin) Down [10.0.0.1] admin done")
		stop := w.die()
		w.drain(web, "n1=10.0.0.1/Down")
		w.wait(20 * time.Second)
		w.expectReports("web Unchanged (admin) admin done")
		stop()
	})
}

// Failing admin states do not delay a retry.
func TestAdminStatesDelayNoRetry(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.inSync(web)
		w.puts()
		w.failing("PUT", 100, armerror.Failure{Status: 409})
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(20 * time.Second)
		w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(interval)
		if puts := w.puts(); puts != "web +10.25s, web +30s, web +31s, web +33s, web +37s, web +40.25s, web +45s" {
			t.Errorf("written %s", puts)
		}
	})
}

// A failure of admin states gives up no change: the next check finds the pool in sync and notifies
// the pool's Service, even if the admin operation had none.
func TestAdminStatesGiveNothingUp(t *testing.T) {
	inWorldOf(t, Config{MaxRetries: 3, AdminState: true, ResyncPeriod: period}, func(w *world) {
		w.inSync(web)
		w.failing("PUT", 2, armerror.Failure{Status: 403})
		w.set(func() { w.wanted["web"] = addresses("n1=10.0.0.1/Down") })
		w.lanes.Add(schedule.Operation{Ref: schedule.Ref{Name: "web"}, Pool: web, Admin: true, ChangedAt: time.Now()})
		w.wait(500 * time.Millisecond)
		if w.standing(web).history.FinalError != "" {
			t.Error("a change was given up that there was not")
		}
		w.wait(20 * time.Second)
		w.set(func() { w.reports = nil; w.pool(web, "") })
		w.wait(period)
		w.expectReports("web Written Updated:web Down [10.0.0.1]")
	})
}
