// SPDX-License-Identifier: Apache-2.0

package conflict

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/service"
)

// A manual edit is reverted; a repeated one is left for a pause that doubles, until the desired
// state changes.
func TestRevertedTwiceIsAConflict(t *testing.T) {
	var conflicts Conflicts
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	requested := DesiredKey{Desired: &service.Spec{Owner: "a1"}, LoadBalancer: "lb"}
	undone := []RevertedPart{{Part: "rule r", Text: "rule r: gone"}}
	leaves := func(differ []RevertedPart) bool {
		return conflicts.RecordReverts(LoadBalancer, "shop/web", requested, "load balancer kubernetes", differ, now)
	}
	step := func(about string, leave, want bool) {
		t.Helper()
		if leave != want {
			t.Errorf("%s: left as it is: %t, want %t", about, leave, want)
		}
	}
	step("before the first write", leaves(undone), false)
	conflicts.RecordMatch(LoadBalancer, "shop/web")
	step("undone once", leaves(undone), false)
	conflicts.RecordMatch(LoadBalancer, "shop/web")
	for _, pause := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour} {
		step("undone again", leaves(undone), true)
		if c := conflicts.RecordMatch(LoadBalancer, "shop/web"); c == nil || !c.Until.Equal(now.Add(pause)) || c.Resource != "load balancer kubernetes" {
			t.Fatalf("contest %+v, want one until %s later", c, pause)
		}
		now = now.Add(pause - time.Second)
		step("the pause is not over", leaves(undone), true)
		now = now.Add(time.Second)
		step("the pause is over", leaves(undone), false)
		conflicts.RecordMatch(LoadBalancer, "shop/web")
	}
	requested.Desired = &service.Spec{Owner: "a1", Internal: true}
	step("it wants something else", leaves(undone), false)
	if c := conflicts.RecordMatch(LoadBalancer, "shop/web"); c != nil {
		t.Errorf("contest %+v, want none about what it wants by now", c)
	}
}

// A missing resource is created twice within an hour. The conflict ends when the resource exists again, also if another
// Service created it. After the next deletion within the hour the pause is longer.
func TestAMissingResourceIsCreatedTwice(t *testing.T) {
	var conflicts Conflicts
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	missing := []RevertedPart{{Part: "load balancer", Text: "it is gone", IsResource: true}}
	emptied := []RevertedPart{{Part: "rule r", Text: "rule r: gone"}, {Part: "frontend f", Text: "frontend f: gone"}}
	var conflict *Conflict
	for i, step := range []struct {
		pause time.Duration
		parts []RevertedPart
		leave bool
	}{
		{0, missing, false},
		{time.Minute, missing, false}, // deleted once
		{time.Minute, nil, false},
		{10 * time.Minute, missing, false}, // twice
		{10 * time.Minute, missing, true},
		{10 * time.Minute, missing, true},
		{time.Minute, emptied, false}, // another Service has created it
		{time.Minute, nil, false},
		{time.Minute, missing, true},
		{time.Hour - time.Second, missing, true},
		{time.Second, missing, false}, // the second pause is an hour
		{time.Minute, nil, false},
		{2 * time.Hour, nil, false}, // forgotten
		{time.Minute, missing, false},
		{time.Minute, missing, false},
		{time.Minute, missing, true},
	} {
		now = now.Add(step.pause)
		if leave := conflicts.RecordReverts(LoadBalancer, "shop/web", DesiredKey{}, "load balancer kubernetes", step.parts, now); leave != step.leave {
			t.Errorf("step %d: left as it is: %t, want %t", i, leave, step.leave)
		}
		if conflict = conflicts.RecordMatch(LoadBalancer, "shop/web"); step.leave != (conflict != nil && !conflict.Until.IsZero()) {
			t.Errorf("step %d: conflict %+v", i, conflict)
		}
	}
}

// A policy that changes each write is detected by what Azure shows right after it, often and long
// enough.
func TestImmediateRevertBecomesAConflict(t *testing.T) {
	var conflicts Conflicts
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var tries int
	for ; tries < 20 && !conflicts.RecordReverts(PublicIPs, "shop/web", DesiredKey{}, "its public IPs", []RevertedPart{{Part: "ip", Text: "ip"}}, now); tries++ {
		conflicts.RecordMismatch(PublicIPs, "shop/web", now)
		now = now.Add(time.Minute)
	}
	if tries != 6 {
		t.Errorf("left after %d writes, one a minute, want 6: five minutes", tries)
	}
	conflicts.RemoveService("shop/web", PublicIPs)
	if conflicts.RecordMatch(PublicIPs, "shop/web") != nil {
		t.Error("forgotten, and there all the same")
	}
}

// A resource that remains in progress is read less and less often.
func TestTheFaultOfAWriteInProgressPausesLonger(t *testing.T) {
	var p InProgress
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, want := range []time.Duration{5 * time.Second, 5 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second} {
		if f := armerror.FromError(p.RecordUpdating("load balancer a", now)); !f.RetryAt.Equal(now.Add(want)) || f.Code != CodeUpdating {
			t.Errorf("found %d times: again at %s, want %s later", i+1, f.RetryAt, want)
		}
	}
	p.RecordIdle("load balancer a")
	if f := armerror.FromError(p.RecordUpdating("load balancer a", now)); !f.RetryAt.Equal(now.Add(5 * time.Second)) {
		t.Errorf("after it was free: again at %s", f.RetryAt)
	}
}

// A second try is only made after a conflicting write.
func TestRetryOfOvertakenWrites(t *testing.T) {
	overtaken := &armerror.Fault{Class: armerror.Retriable, Reason: "precondition_failed", Err: errors.New("412")}
	if !overtaken.IsPreconditionFailed() {
		t.Fatal("not the reason of a 412")
	}
	for name, row := range map[string]struct {
		errs     []error
		reported []bool
	}{
		"well":           {[]error{nil}, nil},
		"refused":        {[]error{errors.New("no")}, nil},
		"overtaken":      {[]error{overtaken, nil}, []bool{true}},
		"twice":          {[]error{overtaken, overtaken}, []bool{false}},
		"while it waits": {[]error{&armerror.Fault{Reason: overtaken.Reason, RetryAt: time.Now()}}, nil},
	} {
		var notified []bool
		n := 0
		err := RunWrite(t.Context(), nil, "it", func(settled bool) { notified = append(notified, settled) }, func(context.Context, func() bool) error {
			n++
			return row.errs[n-1]
		})
		if n != len(row.errs) || len(notified) != len(row.reported) || len(notified) > 0 && notified[0] != row.reported[0] || !errors.Is(err, row.errs[n-1]) {
			t.Errorf("%s: %d tries, told %v, %v", name, n, notified, err)
		}
	}
}
