// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

func nodeIPs(nodes ...int) (ips []netip.Addr) {
	for _, i := range nodes {
		ips = append(ips, nodeIP(i))
	}
	return ips
}

// When a pool that is in sync is written again.
func TestRewrittenMembers(t *testing.T) {
	for about, tt := range map[string]struct {
		before      pendingWrites
		observed    lb.Pool
		recordsMore bool
		write       bool
		pending     bool // a lost write may land although nothing is written
		during      bool // one may land during this write
		waits       bool
	}{
		"nothing was lost":                         {observed: lb.Pool{Etag: "1"}},
		"a lost write has the pool's etag":         {before: pendingWrites{pendingEtag: "1"}, observed: lb.Pool{Etag: "1"}, write: true, during: true},
		"another etag excludes it":                 {before: pendingWrites{pendingEtag: "1"}, observed: lb.Pool{Etag: "2"}},
		"another etag, and the record has more":    {before: pendingWrites{pendingEtag: "1"}, observed: lb.Pool{Etag: "2"}, recordsMore: true},
		"the record has more":                      {observed: lb.Pool{Etag: "1"}, recordsMore: true, write: true, during: true},
		"Azure ignores etags, and it has more":     {before: pendingWrites{pendingEtag: "1", ignoresEtag: true}, observed: lb.Pool{Etag: "2"}, recordsMore: true, write: true, during: true},
		"no etag is shown, and it has more":        {before: pendingWrites{pendingEtag: "1"}, observed: lb.Pool{Etag: lb.NoEtag}, recordsMore: true, write: true, during: true},
		"a rewrite did not change the etag before": {before: pendingWrites{pendingEtag: "1", unchangedEtag: "1"}, observed: lb.Pool{Etag: "1"}, pending: true},
		"that was another etag":                    {before: pendingWrites{pendingEtag: "1", unchangedEtag: "0"}, observed: lb.Pool{Etag: "1"}, write: true, during: true},
		"nothing is open for that etag":            {before: pendingWrites{unchangedEtag: "1"}, observed: lb.Pool{Etag: "1"}},
		"the last write failed":                    {observed: lb.Pool{Etag: "1", Provisioning: lb.Failed}, write: true},
		"it failed, and one was lost":              {before: pendingWrites{pendingEtag: "1", unchangedEtag: "1"}, observed: lb.Pool{Etag: "1", Provisioning: lb.Failed}, write: true, during: true},
		"it may be rolled back":                    {before: pendingWrites{mayRevert: true}, observed: lb.Pool{Etag: "1"}, write: true},
		"a write is running":                       {before: pendingWrites{mayRevert: true, pendingEtag: "1"}, observed: lb.Pool{Etag: "1", Provisioning: lb.Updating}, waits: true},
	} {
		r := Result{pendingWrites: tt.before}
		write, err := r.needsRewrite(tt.observed, tt.recordsMore)
		if write != tt.write || r.HasPending != tt.pending || r.mayHavePending != tt.during || errors.Is(err, ErrNotReady) != tt.waits || (err != nil) != tt.waits {
			t.Errorf("%s: write %t, pending %t, during it %t, %v", about, write, r.HasPending, r.mayHavePending, err)
		}
	}
}

// What the etag after a write shows of lost ones.
func TestNewEtagExcludesLostWrites(t *testing.T) {
	for about, tt := range map[string]struct {
		during, ignores, changes bool
		etag, unchanged          string
		pending                  bool
	}{
		"a new one excludes them":            {during: true, changes: true, etag: "2"},
		"none is shown":                      {during: true, changes: true},
		"the same one, and nothing was lost": {etag: "1", unchanged: "1"},
		"the same one, and a write was lost": {during: true, etag: "1", unchanged: "1", pending: true},
		"the same one after a change":        {changes: true, etag: "1", unchanged: "1", pending: true},
		"Azure ignores it":                   {during: true, ignores: true, etag: "2", unchanged: "2", pending: true},
		"nothing was lost, and it ignores":   {ignores: true, etag: "2"},
	} {
		r := Result{pendingWrites: pendingWrites{mayHavePending: tt.during, ignoresEtag: tt.ignores}}
		r.Change.Next.Etag = "1"
		if tt.changes {
			r.Change.updateCount = 1
		}
		if r.CheckEtag(tt.etag); r.unchangedEtag != tt.unchanged || r.HasPending != tt.pending {
			t.Errorf("%s: unchanged %q, pending %t", about, r.unchangedEtag, r.HasPending)
		}
	}
}

// Since when a lost write may land, and when that ends.
func TestLostWriteTTL(t *testing.T) {
	since, now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 12, 30, 0, 0, time.UTC)
	members := addresses("n1=10.0.0.1")
	for about, tt := range map[string]struct {
		result Result
		since  time.Time
		want   time.Time
		over   bool
	}{
		"none may":                               {result: Result{Outcome: Unchanged}, since: since},
		"it begins":                              {result: Result{Outcome: Unchanged, pendingWrites: pendingWrites{HasPending: true}}, want: now},
		"it continues, because nodes are wanted": {result: Result{Outcome: Unchanged, Addresses: members, pendingWrites: pendingWrites{HasPending: true}}, since: since, want: since},
		"it ends, for none is wanted":            {result: Result{Outcome: Unchanged, pendingWrites: pendingWrites{HasPending: true, pendingEtag: "1"}}, since: since, want: since, over: true},
		"it ends, for no etag can prove it":      {result: Result{Outcome: Written, Addresses: members, pendingWrites: pendingWrites{HasPending: true, pendingEtag: "1", ignoresEtag: true}}, since: since, want: since, over: true},
		"not yet":                                {result: Result{Outcome: Unchanged, pendingWrites: pendingWrites{HasPending: true}}, since: now.Add(time.Second - PendingWriteTTL), want: now.Add(time.Second - PendingWriteTTL)},
		"a failed read tells nothing":            {result: Result{Outcome: Retriable, pendingWrites: pendingWrites{pendingEtag: "1"}}, since: since, want: since},
		"nor a write that has ended":             {result: Result{Outcome: Retriable, pendingWrites: pendingWrites{hasWritten: true}}, since: since, want: since},
		"a failed write that may land is one":    {result: Result{Outcome: Retriable, pendingWrites: pendingWrites{hasWritten: true, pendingEtag: "1"}}, since: since},
		"the pool is deleted, and the wait ends": {result: Result{Outcome: Stale}, since: since},
	} {
		r := tt.result
		if got := r.updatePendingSince(tt.since, now); !got.Equal(tt.want) {
			t.Errorf("%s: since %s, want %s", about, got, tt.want)
		}
		if over := tt.result.HasPending && !r.HasPending; over != tt.over || over && r.pendingEtag != "" {
			t.Errorf("%s: over %t, etag %q", about, over, r.pendingEtag)
		}
	}
}

// The first read of an attempt shows what was reported, the last one what is on record during the write.
func TestTheFirstRecordOfAnAttempt(t *testing.T) {
	first, second := Record{Down: nodeIPs(1)}, Record{Down: nodeIPs(2), Written: nodeIPs(3)}
	r := NewResult(Memory{PendingEtag: "1", unchangedEtag: "0", MayRevert: true}, true)
	if r.Observed != -1 || r.pendingEtag != "1" || r.previousEtag != "1" || r.unchangedEtag != "0" || !r.mayRevert || !r.ignoresEtag {
		t.Errorf("%+v", r)
	}
	r.setRecord(first)
	r.setRecord(second)
	if !slices.Equal(r.firstRecord.Down, first.Down) || !slices.Equal(r.writtenRecord.Down, second.Down) {
		t.Errorf("first %v, then %v", r.firstRecord, r.writtenRecord)
	}
	r.written, r.down = nodeIPs(4), nodeIPs(5)
	if got := r.CurrentRecord(); !slices.Equal(got.Written, nodeIPs(4)) || !slices.Equal(got.Down, nodeIPs(5)) {
		t.Errorf("in sync: %v", got)
	}
	r.HasPending = true
	if got := r.CurrentRecord(); !slices.Equal(got.Written, nodeIPs(3, 4)) || !slices.Equal(got.Down, nodeIPs(2, 5)) {
		t.Errorf("while a lost write may land: %v", got)
	}
}

// What remains of a write after an attempt with an error.
func TestAttemptEffects(t *testing.T) {
	fault := func(a armerror.Failure) error { return armerror.Classify(a, errors.New("Azure refuses")) }
	sent := pendingWrites{pendingEtag: "2", previousEtag: "1", hasWritten: true}
	for about, tt := range map[string]struct {
		before         Result
		err            error
		stopping, late bool
		outcome        Outcome
		etag, code     string
	}{
		"no error":                           {before: Result{Outcome: Written, pendingWrites: sent}, outcome: Written},
		"no error, and one may land":         {before: Result{Outcome: Unchanged, pendingWrites: pendingWrites{HasPending: true, pendingEtag: "1", previousEtag: "1"}}, outcome: Unchanged, etag: "1"},
		"the write was rejected":             {before: Result{Outcome: Written, pendingWrites: sent}, err: fault(armerror.Failure{Status: 409}), outcome: Retriable},
		"its answer was lost":                {before: Result{Outcome: Written, pendingWrites: sent}, err: fault(armerror.Failure{ResultUnknown: true}), outcome: Retriable, etag: "2", code: armerror.CodeOutcomeUnknown},
		"the read failed":                    {before: Result{pendingWrites: pendingWrites{pendingEtag: "1", previousEtag: "1"}}, err: fault(armerror.Failure{Status: 409}), outcome: Retriable, etag: "1"},
		"it was late":                        {before: Result{Outcome: Written, pendingWrites: sent}, err: fault(armerror.Failure{Status: 400}), late: true, outcome: Retriable, etag: "2", code: armerror.CodeOutcomeUnknown},
		"the controller stops":               {before: Result{Outcome: Written, pendingWrites: sent}, err: fault(armerror.Failure{Status: 409}), stopping: true, outcome: Shutdown, code: armerror.CodeShutdown},
		"something of our own was not ready": {before: Result{Outcome: Written}, err: fmt.Errorf("%w: the record", ErrNotReady), outcome: Postponed, code: "NotReady"},
		"no request was sent":                {before: Result{Observed: -1}, err: fault(armerror.Failure{RetryAfterPending: true}), outcome: Postponed, code: armerror.CodeRetryAfter},
		"one was, and the next was not":      {before: Result{Observed: 0}, err: fault(armerror.Failure{RetryAfterPending: true}), outcome: Retriable, code: armerror.CodeRetryAfter},
		"Weir does not write it":             {before: Result{Outcome: Rejected}, err: errInterfaces(lb.PoolID{}), outcome: Rejected, code: CodeNICPool},
		"the pool is gone":                   {before: Result{Observed: -1}, err: fault(armerror.Failure{Status: 404, TargetMissing: true}), outcome: Stale},
	} {
		r := tt.before.FinishAttempt(tt.err, tt.stopping, tt.late)
		if r.Outcome != tt.outcome || r.pendingEtag != tt.etag || (r.Fault != nil) != (tt.err != nil) || tt.code != "" && r.Fault.Code != tt.code {
			t.Errorf("%s: %s, etag %q, %+v", about, r.Outcome, r.pendingEtag, r.Fault)
		}
	}
}

// What Azure shows after a write, and what a second try keeps of the first.
func TestTheReadAfterAWrite(t *testing.T) {
	r := Result{Change: Change{Next: lb.Pool{Etag: "1", Addresses: addresses("n1=10.0.0.1 n2=10.0.0.2")}, updateCount: 1}}
	r.RecordWrite()
	if r.pendingEtag != "1" || !r.hasWritten {
		t.Errorf("%+v", r.pendingWrites)
	}
	err := r.VerifyWrite(lb.Pool{Etag: "2", Addresses: addresses("n1=10.0.0.1")})
	if f := armerror.FromError(err); err == nil || f.Class != armerror.Retriable || r.Observed != 1 {
		t.Errorf("one is missing: %v, %d observed", err, r.Observed)
	}
	if err := r.VerifyWrite(lb.Pool{Etag: "1", Addresses: addresses("n2=10.0.0.2 n1=10.0.0.1")}); err != nil || r.Observed != 2 || r.unchangedEtag != "1" {
		t.Errorf("%v, %d observed, unchanged %q", err, r.Observed, r.unchangedEtag)
	}
	first := Record{Written: nodeIPs(1)}
	r.Addresses, r.firstRecord, r.ChangesMembers = addresses("n1=10.0.0.1"), &first, true
	for status, conflict := range map[int]bool{412: true, 400: false} {
		for _, landed := range []bool{false, true} {
			second := r.ForSecondTry(NewResult(Memory{PendingEtag: "0"}, false), armerror.Classify(armerror.Failure{Status: status, MayBeApplied: landed}, errors.New("x")))
			want := map[bool]string{true: "1", false: "0"}[landed]
			if second.HadConflict != conflict || second.pendingEtag != want || second.previousEtag != want || second.hasWritten != landed {
				t.Errorf("%d, landed %t: %+v", status, landed, second)
			}
			if second.Observed != 2 || len(second.Addresses) != 1 || second.firstRecord != &first || second.ChangesMembers {
				t.Errorf("%d: %+v", status, second)
			}
		}
	}
}

// A pool of network interfaces that is to hold addresses: its members are rejected, its admin states are not.
func TestAdminStatesOfInterfaces(t *testing.T) {
	pool := lb.Pool{NIC: true, Addresses: []lb.Address{{Interface: "i1", Machine: "m1"}, {Interface: "i2", Machine: "m2", AdminState: lb.Down}}}
	var r Result
	if err := r.RecordRead(pool, false); err == nil || r.Outcome != Rejected || r.Observed != 2 || r.HoldsInterfaces {
		t.Errorf("without admin states: %v, %+v", err, r)
	}
	r = Result{}
	if err := r.RecordRead(pool, true); err != nil || r.Outcome != Unchanged || !r.HoldsInterfaces || r.MemberOutcome() != Rejected || r.IsInSync() || !r.StatesInSync() {
		t.Errorf("%v, %+v", err, r)
	}
	if outcome, f := r.ReportedOutcome(lb.PoolID{}); outcome != Rejected || f.Code != CodeNICPool {
		t.Errorf("reported %s, %v", outcome, f)
	}
	fault := newRetriableFault(errors.New("no"))
	if outcome, f := (Result{Outcome: Unchanged, MemberProgress: &MemberProgress{Outcome: Retriable, Fault: fault}}).ReportedOutcome(lb.PoolID{}); outcome != Retriable || f != fault {
		t.Errorf("while members fail: reported %s, %v", outcome, f)
	}
	at := map[string]netip.Addr{"m1": nodeIP(1), "m2": nodeIP(2)}
	want := Desired{
		Addresses: []lb.Address{{Name: "n1", IP: nodeIP(1), AdminState: lb.Down}, {Name: "n2", IP: nodeIP(2)}},
		AddressOf: func(machine string) (netip.Addr, bool) { ip, ok := at[machine]; return ip, ok },
		Record:    Record{Down: []netip.Addr{nodeIP(2)}, Written: []netip.Addr{nodeIP(3)}},
	}
	if !r.HasRemovedNodes(want) || len(r.Addresses) != 2 || r.firstRecord == nil {
		t.Error("nodes leave, and machines are not read")
	}
	write, intent, err := r.PrepareStates(pool, want)
	if err != nil || !write || r.Outcome != Written || intent == nil {
		t.Fatalf("%t %v %v", write, intent, err)
	}
	if fmt.Sprint(intent.Down) != "[10.0.0.1 10.0.0.2]" || fmt.Sprint(intent.Written) != "[10.0.0.3]" || intent.Update != 2 || intent.Desired != 2 || intent.Observed != 2 || !intent.OnlyStates {
		t.Errorf("%+v", intent)
	}
	if got := r.Change.Next.Addresses; got[0].AdminState != lb.Down || got[1].AdminState != lb.None || fmt.Sprint(r.down) != "[10.0.0.1]" {
		t.Errorf("%+v, %v", got, r.down)
	}
	want.Record.Down = []netip.Addr{nodeIP(1), nodeIP(2)} // on record since the last attempt
	if write, intent, err = r.PrepareStates(pool, want); !write || intent != nil || err != nil {
		t.Errorf("%t %v %v", write, intent, err)
	}
	want.Addresses, want.Record.Down = want.Addresses[1:], nil
	if r.HasRemovedNodes(want) {
		t.Error("machines are read, and no node leaves")
	}
	if write, intent, err = r.PrepareStates(lb.Pool{NIC: true, Etag: "1"}, want); write || intent != nil || err != nil || r.Outcome != Unchanged {
		t.Errorf("%t %v %v, %s", write, intent, err, r.Outcome)
	}
}
