// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
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

// Somebody deletes the BackendPool of a pool that Weir made, and with it the record of what is
// Down. The next one finds a node Down that leaves, which nobody else has set: it takes it back
// in the end. What somebody set Down whose node does not leave stays so, and so does all in
// pools of other people.
func TestTheNextBackendPoolTakesBackWhatIsDown(t *testing.T) {
	for _, alone := range []bool{true, false} {
		inAdminWorld(t, func(w *world) {
			w.alone = alone
			w.pool(web, "n1=10.0.0.1/Down n2=10.0.0.2/Down")
			w.change(web, "n1=10.0.0.1/Down n2=10.0.0.2 n3=10.0.0.3")
			w.wait(100 * time.Millisecond)
			if alone {
				w.set(func() {
					w.fail = func(call string, _ lb.PoolID) error { // what is written before it dies
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

// Somebody who has taken back what was left Down has it forgotten. A write that may be on its
// way to set it Down once more is fenced off first.
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

// drain has nodes of a pool be Down, or be so no more, and tells its lane.
func (w *world) drain(id lb.PoolID, members string) {
	op := poolschedule.Operation{Ref: poolschedule.Ref{Name: id.Name}, Pool: id, Service: poolschedule.ServiceName{Name: id.Name}, Admin: true, ChangedAt: time.Now()}
	w.set(func() {
		w.wanted[id.Name] = addresses(members)
		op.Stake = w.stake(id)
	})
	w.lanes.Add(op)
}

// stake counts what a change of admin states is about. The caller holds w.mu.
func (w *world) stake(id lb.PoolID) poolschedule.Stake {
	var s poolschedule.Stake
	for _, a := range w.wanted[id.Name] {
		down := slices.Contains(w.down[id.Name], a.IP)
		switch {
		case a.AdminState == lb.Down && !down:
			s.Leaves++
		case a.AdminState != lb.Down && down:
			s.Returns++
		case a.AdminState != lb.Down:
			s.Stays++
		}
	}
	return s
}

// spellAdmin is what a report says of admin states.
func spellAdmin(r Report) string {
	text := ""
	switch {
	case r.Admin && r.AdminTried:
		text += " (admin)"
	case r.Admin != r.AdminTried:
		text += " (admin too)"
	}
	if len(r.Downed) > 0 {
		text += fmt.Sprint(" Down ", r.Downed)
	}
	if len(r.Restored) > 0 {
		text += fmt.Sprint(" back ", r.Restored)
	}
	if r.AdminFailed {
		text += " admin failed"
	}
	if r.AdminDone {
		text += " admin done"
	}
	return text
}

// puts returns when pools were written, in their order.
func (w *world) puts() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, call := range w.calls {
		if at, name, ok := strings.Cut(call, " PUT "); ok {
			name, _, _ = strings.Cut(name, " ")
			all = append(all, name+" "+at)
		}
	}
	w.calls = nil
	return strings.Join(all, ", ")
}

// One write is for the nodes that drain and for the change that waited for company.
func TestAdminStatesWaitForNothingAndTakeTheMembershipAlong(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.level(web)
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

// What fails for the sake of admin states alone costs the change nothing that was taken
// along; it is tried without end, and told once.
func TestAdminStatesHaveABackOffOfTheirOwnAndNoBudget(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.level(web)
		w.set(func() { w.calls = nil })
		w.failing("PUT", 8, fault.Answer{Status: 400})
		w.drain(web, "n1=10.0.0.1/Down")
		w.wait(20 * time.Second)
		// Its own change fails, and is given up; the back-off goes on.
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

// The one operation is taken along by an attempt for the other, and unharmed.
func TestAFailureIsThatOfWhateverCausedIt(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.level(web)
		w.failing("PUT", 3, fault.Answer{Status: 409})
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(interval / 2) // it has failed, and is due in half an interval
		w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(2 * time.Second)
		w.expectReports("web Retriable Retrying:web", "web Retriable (admin) admin failed", "web Retriable (admin)")
		for _, op := range w.standing(web).ops {
			if op.Member() && op.RetryCount != 1 || op.Admin && op.Tries != 2 || op.Carried {
				t.Errorf("%+v", op)
			}
		}
		w.wait(10 * time.Second)
		w.expectReports("web Written Updated:web (admin) Down [10.0.0.1] admin done")
	})
}

// Where members and admin states are due together, both have caused the attempt.
func TestAnAttemptForBothIsOneOfBoth(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.level(web)
		w.failing("PUT", 1, fault.Answer{Status: 409})
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

// A Retry-After holds admin states, too.
func TestAdminStatesWaitForRetryAfter(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.level(web)
		w.failingPool("PUT", web, 1, func() fault.Answer {
			return fault.Answer{Status: 429, RetryAt: w.start.Add(5 * time.Minute)}
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

// However often a taint comes and goes, one operation of the pool waits, and it keeps its
// back-off.
func TestOneAdminOperationAPool(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.level(web)
		w.failing("PUT", 3, fault.Answer{Status: 403})
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

// A write that seemed to fail and had landed is told when a read shows it; what an earlier
// process has done is not told again.
func TestWhatBecameDownIsToldOnce(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.level(web)
		w.set(func() {
			w.fail = func(call string, id lb.PoolID) error {
				if call != "PUT" {
					return nil
				}
				w.fail = func(string, lb.PoolID) error { return nil }
				w.pools[id.Key()] = &lb.Pool{ID: id, Etag: "9", Addresses: addresses("n1=10.0.0.1/Down")}
				return fault.Classify(fault.Answer{OutcomeUnknown: true}, errors.New("connection reset"))
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

// However often admin states fail in between, a retry keeps its time.
func TestAdminStatesDelayNoRetry(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.level(web)
		w.puts()
		w.failing("PUT", 100, fault.Answer{Status: 409})
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(20 * time.Second)
		w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(interval)
		if puts := w.puts(); puts != "web +10.25s, web +30s, web +31s, web +33s, web +37s, web +40.25s, web +45s" {
			t.Errorf("written %s", puts)
		}
	})
}

// A failure of admin states gives up no change: the next look is one at a level pool, and the
// Service of the pool is who hears of it, also if the admin operation named none.
func TestAdminStatesGiveNothingUp(t *testing.T) {
	inWorldOf(t, Config{MaxRetries: 3, AdminState: true, DriftPeriod: period}, func(w *world) {
		w.level(web)
		w.failing("PUT", 2, fault.Answer{Status: 403})
		w.set(func() { w.wanted["web"] = addresses("n1=10.0.0.1/Down") })
		w.lanes.Add(poolschedule.Operation{Ref: poolschedule.Ref{Name: "web"}, Pool: web, Admin: true, ChangedAt: time.Now()})
		w.wait(500 * time.Millisecond)
		if w.standing(web).history.GaveUp != "" {
			t.Error("a change was given up that there was not")
		}
		w.wait(20 * time.Second)
		w.set(func() { w.reports = nil; w.pool(web, "") })
		w.wait(period)
		w.expectReports("web Written Updated:web Down [10.0.0.1]")
	})
}
