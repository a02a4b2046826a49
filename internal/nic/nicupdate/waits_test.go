// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// While the throttle gate is closed nothing is sent and nothing fails, and the reason is reported.
// A wait for the write quota is not reported.
func TestAClosedGate(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		opens := time.Now().Add(time.Minute)
		w.gate = func(lb.ResourceID) (time.Time, string) {
			if now := time.Now(); now.Before(opens) {
				return opens, "writes are closed"
			} else if now.Before(opens.Add(time.Second)) {
				return opens.Add(time.Second), "" // its turn
			}
			return time.Time{}, ""
		}
		w.bring("a/k8s", "n1", "")
		w.wait(30 * time.Second)
		w.expectSettled("+1s a/k8s")
		w.expect("bring", w.bring("a/k8s", "n1", ""), "waits n1: writes are closed")
		w.wait(32 * time.Second)
		w.expect("bring", w.bring("a/k8s", "n1", ""), "working n1")
		w.wait(time.Minute)
		w.expectCalls("+1m1s LIST", "+1m1.1s PUT n1")
		w.expectSettled("+1m3.1s a/k8s")
	})
}

// A short wait is not reported.
func TestAGateIsClosedForAMoment(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		opens := time.Now().Add(3 * time.Second)
		w.gate = func(lb.ResourceID) (time.Time, string) {
			if time.Now().Before(opens) {
				return opens, "closed"
			}
			return time.Time{}, ""
		}
		w.bring("a/k8s", "n1", "")
		w.wait(2 * time.Second)
		w.expect("bring", w.bring("a/k8s", "n1", ""), "working n1")
		w.expectSettled()
	})
}

// The gate closes before a request is sent: this does not count as an attempt.
func TestARequestThatNeverLeft(t *testing.T) {
	for _, call := range []string{"LIST", "PUT"} {
		inWorld(t, func(w *world) {
			w.has("n1", "")
			w.has("n2", "")
			w.failing(call, 1, armerror.Failure{GateClosed: true, RetryAt: time.Now().Add(20 * time.Second)})
			w.bring("a/k8s", "n1 n2", "")
			w.wait(time.Minute)
			w.expectShown("n1", "a/k8s")
			w.expectShown("n2", "a/k8s")
		})
	}
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "")
		w.has("blue/0", "")
		w.has("blue/1", "")
		for _, call := range []string{"PATCH", "UPGRADE"} {
			w.failing(call, 1, armerror.Failure{GateClosed: true, RetryAt: time.Now().Add(20 * time.Second)})
			w.bring("a/k8s", "blue/0 blue/1", "")
			w.wait(time.Minute)
			w.bring("a/k8s", "", "blue/0 blue/1")
			w.wait(time.Minute)
		}
		w.expectShown("blue/1", "")
		w.expect("bring", w.bring("a/k8s", "", ""), "working blue/0 blue/1")
		w.wait(time.Minute)
		w.take(&w.calls)
		w.set(func() { w.sets["blue"].Interfaces = []lb.InterfaceConfiguration{configuration("a/k8s")} })
		w.failing("PUT", 1, armerror.Failure{GateClosed: true, RetryAt: time.Now().Add(20 * time.Second)})
		w.bring("a/k8s", "blue/0 blue/1", "")
		w.wait(15 * time.Second)
		w.expect("calls", w.count(), "INSTANCES 1 PUT 1 SET 1")
	})
}

// lease is held by another controller until a given time, and lost at another.
type lease struct {
	mu         sync.Mutex
	from, lost time.Time
	inside     int
	asked      int
}

func (l *lease) Enter(context.Context) (valid func() bool, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if time.Now().Before(l.from) {
		return nil, nil, errors.New("held by another client")
	}
	l.inside++
	return l.valid, l.leave, nil
}

func (l *lease) valid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost.IsZero() || time.Now().Before(l.lost)
}

func (l *lease) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside--
}

// keep sets when the lease is lost; zero is never.
func (l *lease) keep(lost time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = lost
}

// Another controller holds the lease: nothing is sent, and all machines wait together.
func TestTheLeaseIsHeld(t *testing.T) {
	inWorld(t, func(w *world) {
		w.stop()
		held := &lease{from: time.Now().Add(15 * time.Second)}
		w.run(1, held)
		w.has("n1", "")
		w.has("n2", "")
		w.bring("a/k8s", "n1 n2", "")
		w.wait(10 * time.Second)
		w.expect("bring", w.bring("a/k8s", "n1 n2", ""), "waits n1: held by another client; waits n2: held by another client")
		w.wait(time.Minute)
		w.expectCalls("+21s LIST", "+21.1s PUT n1", "+23.1s PUT n2")
		if held.inside != 0 || held.asked != 4 {
			t.Errorf("the lease was asked for %d times, and not left %d times", held.asked, held.inside)
		}
	})
}

// The lease is lost between read and write: nothing is written, and this is not a failure.
func TestTheLeaseIsLost(t *testing.T) {
	inWorld(t, func(w *world) {
		w.stop()
		held := &lease{lost: time.Now().Add(1050 * time.Millisecond)}
		w.run(1, held)
		w.hasSet("blue", lb.UpgradeManual, "a/k8s")
		w.has("blue/0", "")
		w.has("n1", "")
		w.bring("a/k8s", "n1 blue/0", "")
		w.wait(9 * time.Second)
		w.expect("calls", w.count(), "INSTANCES 1 LIST 1 SET 1")
		w.expect("bring", w.bring("a/k8s", "n1 blue/0", ""), "waits n1: "+reasonLeaseLost+"; waits blue/0: "+reasonLeaseLost)
		held.keep(time.Time{})
		w.wait(time.Minute)
		w.expectShown("n1", "a/k8s")
		w.expectShown("blue/0", "a/k8s")
	})
}

// The process ends during a write: nothing is reported, and the next process completes it.
func TestAnEnd(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.bring("a/k8s", "n1", "")
		w.wait(2 * time.Second)
		w.stop()
		w.expectSettled()
		w.expect("bring", w.bring("a/k8s", "n1", ""), "working n1")
		w.run(4, nil)
		w.bring("a/k8s", "n1", "")
		w.wait(time.Minute)
		w.expectShown("n1", "a/k8s")
	})
}
