// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/pool/diff"
)

// A change starts a pool's pace; a check does not, whatever it finds.
func TestALookBeginsNoPace(t *testing.T) {
	begun := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		about string
		op    Operation
		paces bool
	}{
		{"a look for drift", Operation{Resync: true}, false},
		{"the first look of a process", Operation{}, false},
		{"the first look at what is on record otherwise", Operation{OutOfSync: true}, true},
		{"a change", Operation{ChangedAt: begun}, true},
		{"a change that is tried again", Operation{ChangedAt: begun, RetryCount: 1}, true},
		{"admin states", Operation{Admin: true, ChangedAt: begun}, false},
	} {
		cause := CauseOf([]Operation{tt.op}, true)
		h := History{}.AfterAttempt(diff.Unchanged, nil, cause, begun, begun, time.Minute)
		if got := !h.LastChange.IsZero(); got != tt.paces {
			t.Errorf("%s begins a pace: %t", tt.about, got)
		}
	}
}

// What an attempt leaves behind for the next one.
func TestHistoryAfterAnAttempt(t *testing.T) {
	start, now := seconds(0), seconds(5)
	before := History{DelayCount: 3, WaitUntil: seconds(9), TargetSetAt: seconds(1), NeedsRead: true, MustBeAlone: true}
	exhausted := armerror.Classify(armerror.Failure{Status: 503}, errors.New("x"))
	for about, tt := range map[string]struct {
		outcome                  diff.Outcome
		fault                    *armerror.Fault
		cause                    Cause
		excluded                 bool
		member, admin, firstTime bool
	}{
		"written":                     {outcome: diff.Written, cause: Cause{Member: true, hasChange: true}, member: true},
		"in sync":                     {outcome: diff.Unchanged, cause: Cause{Admin: true}, admin: true},
		"retriable stays as it was":   {outcome: diff.Retriable, cause: Cause{Member: true}, excluded: true, member: true},
		"terminal":                    {outcome: diff.Terminal, fault: armerror.Classify(armerror.Failure{Status: 400}, errors.New("x")), excluded: true, firstTime: true},
		"rejected without a fault":    {outcome: diff.Rejected, excluded: true, firstTime: true},
		"terminal, but Azure is down": {outcome: diff.Terminal, fault: exhausted, firstTime: true},
	} {
		h := before
		h.MustBeAlone = !tt.firstTime
		h = h.AfterAttempt(tt.outcome, tt.fault, tt.cause, start, now, time.Minute)
		if h.DelayCount != 0 || !h.WaitUntil.IsZero() || !h.TargetSetAt.IsZero() || h.NeedsRead {
			t.Errorf("%s: still waits: %+v", about, h)
		}
		if h.MustBeAlone != tt.excluded || h.LastAttempt.Equal(start) != tt.member || h.LastAdmin.Equal(start) != tt.admin {
			t.Errorf("%s: %+v", about, h)
		}
	}
	for n, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		h := History{DelayCount: n, NeedsRead: true}.AfterAttempt(diff.Postponed, nil, Cause{Member: true, Admin: true, hasChange: true}, start, now, time.Minute)
		if h.DelayCount != n+1 || !h.WaitUntil.Equal(now.Add(want)) || !h.NeedsRead || !h.LastAttempt.IsZero() || !h.LastAdmin.IsZero() || !h.LastChange.IsZero() {
			t.Errorf("postponed for the %dth time: %+v", n+1, h)
		}
	}
}

// What a pool showed before an uncounted write is kept until the write is counted.
func TestObservationBeforeAnUncountedWrite(t *testing.T) {
	for owed, want := range map[bool]uint64{false: 8, true: 7} {
		r := diff.Result{Outcome: diff.Retriable, InterfaceHash: 8}
		if h := (History{UncountedWrite: owed, UncountedHash: 7}).AfterMachineWrite(&r); h.UncountedHash != want {
			t.Errorf("owed %t: %d, want %d", owed, h.UncountedHash, want)
		}
	}
}

// An attempt that finds a pool in sync after a write that was not counted is that write.
func TestUncountedWritesAreCountedOnce(t *testing.T) {
	pending := &diff.MemberProgress{Outcome: diff.Postponed}
	for about, tt := range map[string]struct {
		owed    bool
		result  diff.Result
		written bool
		left    bool
	}{
		"nothing is owed":          {result: diff.Result{Outcome: diff.Unchanged}},
		"it is in sync":            {owed: true, result: diff.Result{Outcome: diff.Unchanged}, written: true},
		"machines are written yet": {owed: true, result: diff.Result{Outcome: diff.Unchanged, MemberProgress: pending}, left: true},
		"it fails":                 {owed: true, result: diff.Result{Outcome: diff.Retriable}, left: true},
		"members are handed over":  {result: diff.Result{Outcome: diff.Unchanged, MemberProgress: pending, TargetSet: true, ChangesMembers: true}, left: true},
		"the same are":             {result: diff.Result{Outcome: diff.Unchanged, MemberProgress: pending, TargetSet: true}},
		"they are only computed":   {result: diff.Result{Outcome: diff.Retriable, ChangesMembers: true}},
		"its interfaces are the same as before": {owed: true, result: diff.Result{
			Outcome: diff.Unchanged, MachineTarget: &diff.MachineTarget{},
		}},
	} {
		r := tt.result
		h := History{UncountedWrite: tt.owed}.AfterMachineWrite(&r)
		if written := r.Outcome == diff.Written && r.ChangesMembers; written != tt.written || h.UncountedWrite != tt.left {
			t.Errorf("%s: %s, owed %t", about, r.Outcome, h.UncountedWrite)
		}
	}
}

// A wait for machines ends a second after the handover at the earliest, and only once.
func TestTheWaitForMachinesEnds(t *testing.T) {
	set := seconds(10)
	waits := History{DelayCount: 2}.AfterTarget(diff.Result{MemberProgress: &diff.MemberProgress{WaitFor: time.Minute}}, set)
	if waits.DelayCount != 0 || !waits.WaitUntil.Equal(seconds(70)) || !waits.TargetSetAt.Equal(set) {
		t.Errorf("%+v", waits)
	}
	if h := (History{DelayCount: 2}).AfterTarget(diff.Result{MemberProgress: &diff.MemberProgress{}}, set); h.DelayCount != 2 || !h.TargetSetAt.IsZero() || !h.WaitUntil.IsZero() {
		t.Errorf("without a signal: %+v", h)
	}
	next, woken := waits.EndMachineWait()
	if !woken || !next.WaitUntil.Equal(seconds(11)) {
		t.Errorf("woken %t, until %s", woken, next.WaitUntil)
	}
	if second, woken := next.EndMachineWait(); woken || !second.WaitUntil.Equal(next.WaitUntil) {
		t.Errorf("woken again, until %s", second.WaitUntil)
	}
	other := History{WaitUntil: seconds(70)}
	if h, woken := other.EndMachineWait(); woken || !h.WaitUntil.Equal(other.WaitUntil) {
		t.Errorf("another wait ends: %s", h.WaitUntil)
	}
}

func TestHistoryAfterTarget(t *testing.T) {
	now := seconds(0)
	target := &diff.MachineTarget{}
	h := History{}.AfterTarget(diff.Result{TargetSet: true, MachineTarget: target, Unusable: []diff.Unusable{{}}}, now)
	if h.TargetHash != target.Fingerprint() || !h.HasUnusable || !h.WaitUntil.IsZero() {
		t.Errorf("%+v", h)
	}
	h = h.AfterTarget(diff.Result{MemberProgress: &diff.MemberProgress{WaitFor: time.Minute}}, now)
	if h.TargetHash != target.Fingerprint() || !h.HasUnusable || !h.WaitUntil.Equal(seconds(60)) {
		t.Errorf("%+v", h)
	}
	if h = h.AfterTarget(diff.Result{TargetSet: true, MachineTarget: target}, now); h.HasUnusable {
		t.Error("machines that have joined are still unusable")
	}
}

// A time that has passed is shown as now, and none as none.
func TestTimesForDisplay(t *testing.T) {
	now := seconds(10)
	for at, want := range map[time.Time]time.Time{{}: {}, seconds(5): now, seconds(15): seconds(15)} {
		if got := NotBeforeNow(at, now); !got.Equal(want) {
			t.Errorf("%s is shown as %s", at, got)
		}
	}
}

// Without a period, only a lost write is checked, once it can no longer land.
func TestChecksWithoutAPeriod(t *testing.T) {
	since := seconds(0)
	last := since.Add(diff.PendingWriteTTL)
	for about, tt := range map[string]struct {
		since, now, want time.Time
	}{
		"nothing was lost": {now: since},
		"one may land":     {since: since, now: since, want: last},
		"it cannot":        {since: since, now: last},
	} {
		var h History
		h.Writes.PendingSince = tt.since
		if got := h.NextCheckAt("p", tt.now, 0); !got.Equal(tt.want) {
			t.Errorf("%s: checked at %s, want %s", about, got, tt.want)
		}
	}
	var h History
	h.Writes.PendingSince = since
	if got := h.NextCheckAt("p", since, 5*time.Minute); !got.After(since) || got.After(since.Add(5*time.Minute)) {
		t.Errorf("with a period: %s", got)
	}
}

// What caused an attempt, and what it only took along.
func TestCauses(t *testing.T) {
	member, admin := Operation{ChangedAt: start}, Operation{Admin: true, ChangedAt: start}
	extra := func(o Operation) Operation { o.Extra = true; return o }
	for about, tt := range map[string]struct {
		ops     []Operation
		settled bool
		want    Cause
	}{
		"a change":                               {ops: []Operation{member}, want: Cause{Member: true, hasChange: true}},
		"admin states":                           {ops: []Operation{admin}, want: Cause{Admin: true}},
		"both":                                   {ops: []Operation{member, admin}, want: Cause{Member: true, Admin: true, hasChange: true}},
		"admin states take a change along":       {ops: []Operation{admin, extra(member)}, want: Cause{Admin: true}},
		"and it is settled":                      {ops: []Operation{admin, extra(member)}, settled: true, want: Cause{Admin: true, hasChange: true}},
		"a change takes admin states along":      {ops: []Operation{extra(admin), member}, want: Cause{Member: true, hasChange: true}},
		"and they are settled":                   {ops: []Operation{extra(admin), member}, settled: true, want: Cause{Member: true, Admin: true, hasChange: true}},
		"a check":                                {ops: []Operation{{Resync: true}}, want: Cause{Member: true}},
		"only what was taken along is still due": {ops: []Operation{extra(admin)}},
	} {
		if got := CauseOf(tt.ops, tt.settled); got != tt.want {
			t.Errorf("%s: %+v", about, got)
		}
	}
	if got := OldestChange([]Operation{{Admin: true, ChangedAt: seconds(1)}, {ChangedAt: seconds(7)}, {ChangedAt: seconds(5)}, {}}); !got.Equal(seconds(5)) {
		t.Errorf("the oldest change is of %s", got)
	}
}
