// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// The message names only what is about to change.
func TestRecordBeforeAWrite(t *testing.T) {
	for _, tt := range []struct {
		intent diff.Intent
		want   string
	}{
		{diff.Intent{Add: 1}, "adding 1; the pool held 0 addresses"},
		{diff.Intent{Remove: 1, Observed: 1}, "removing 1; the pool held 1 address"},
		{diff.Intent{Update: 1, Observed: 2}, "changing the admin state of 1; the pool held 2 addresses"},
		{diff.Intent{Add: 2, Remove: 3, Update: 4}, "adding 2, removing 3, changing the admin state of 4; the pool held 0 addresses"},
	} {
		if got := updatingMessage(tt.intent); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// The advice is never truncated, however long Azure's text is.
func TestMessageEndIsNotTruncated(t *testing.T) {
	at := time.Unix(1000, 0)
	r := updater.Report{
		At: at, RetryAt: at, AdminRetryAt: at, NextCheckAt: at, NextEligibleAt: at.Add(time.Hour), RetriesUsed: 10, Budget: 10,
		Fault: &armerror.Fault{Code: "Bad", Err: errors.New(strings.Repeat("long ", 2000))},
	}
	for name, format := range map[string]func(updater.Report) string{
		"retrying": retryingMessage, "admin states": adminRetryingMessage, "failed": failedMessage, "removal": removalFailedMessage,
		"an event": failureEventMessage, "another": retryEventMessage,
	} {
		output := format(r)
		if len(output) > humanize.MaxMessage || len(output) < humanize.MaxMessage/2 || humanize.FormatMessage(output, humanize.MaxMessage) != output {
			t.Errorf("%s: %d bytes", name, len(output))
		}
	}
}

// A message names some and counts the rest.
func TestNamesInAMessageAreBounded(t *testing.T) {
	var set membership.Set
	var ips []netip.Addr
	for i := range 12 {
		if i < 5 || i == 11 {
			set.NonMembers = append(set.NonMembers, membership.NonMember{Node: "n", Reason: "gone"})
		}
		if i == 4 && strings.Contains(InSyncMessage(set), "more") {
			t.Error(InSyncMessage(set))
		}
		ips = append(ips, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
		want := map[int]string{9: "10.0.0.9. Weir", 10: "10.0.0.9, 1 more. Weir", 11: "10.0.0.9, 2 more. Weir"}[i]
		if got := conflictMessage(ips); !strings.Contains(got, want) {
			t.Errorf("%d: %s", i, got)
		}
	}
	set.NonMembers = append(set.NonMembers, membership.NonMember{Node: "cp", Reason: "a label", ByLabel: true}) // listed separately
	if got := InSyncMessage(set); !strings.Contains(got, "; kept out: node cp: a label; left out: node n: gone;") || !strings.HasSuffix(got, "and 1 more") {
		t.Error(got)
	}
}

// A successful attempt resets the retries; the counts are those of the report.
func TestRetriesOfASettledAttempt(t *testing.T) {
	var s v1alpha1.BackendPoolStatus
	for _, tt := range []struct {
		r    updater.Report
		want int32
	}{
		{updater.Report{Outcome: diff.Retriable, RetriesUsed: 2}, 2},
		{updater.Report{Outcome: diff.Written, InSync: true, RetriesUsed: 2}, 0},
	} {
		if recordAttempt(&s, membership.Set{}, tt.r); *s.RetriesUsed != tt.want {
			t.Errorf("%s: %d retries", tt.r.Outcome, *s.RetriesUsed)
		}
	}
}

// An interface that Weir set Down counts like an address.
func TestManagedMembersOfAPool(t *testing.T) {
	single, down := []string{"10.0.0.1"}, []v1alpha1.DownAddress{{Address: "10.0.0.1"}}
	for _, tt := range []struct {
		status v1alpha1.BackendPoolStatus
		holds  bool
	}{
		{v1alpha1.BackendPoolStatus{}, false}, {v1alpha1.BackendPoolStatus{WrittenAddresses: single}, true},
		{v1alpha1.BackendPoolStatus{Down: down}, true}, {v1alpha1.BackendPoolStatus{WrittenAddresses: single, Down: down}, true},
	} {
		if e := (&Entry{unsavedStatus: unsavedStatus{status: tt.status}}); e.hasMembers() != tt.holds {
			t.Errorf("%+v", tt.status)
		}
	}
}

func targetOf(t *testing.T, p *v1alpha1.BackendPool) lb.PoolID {
	t.Helper()
	id, err := newCluster(t).Cluster.Target(p)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// With equal rights, the BackendPool that took the pool owns it, in either order.
func TestPrecedence(t *testing.T) {
	took, younger := bp("b", 1, took), bp("a", 0)
	for _, all := range [][]any{{took, younger, bp("c", 0, deleting)}, {younger, took}} {
		if holder := newCluster(t, all...).PoolOwner(targetOf(t, took)); holder == nil || holder.Name != "b" {
			t.Errorf("held by %v", holder)
		}
	}
	c := newCluster(t)
	if c.compareClaims(took, younger) >= 0 || c.compareClaims(younger, took) <= 0 || c.compareClaims(bp("a", 0), bp("b", 0)) >= 0 || c.compareClaims(bp("a", 1), bp("b", 0)) <= 0 {
		t.Error("who comes first")
	}
	// A deleted BackendPool that never took the pool is skipped.
	if holder := newCluster(t, bp("a", 0, deleting), bp("b", 1)).PoolOwner(targetOf(t, took)); holder == nil || holder.Name != "b" {
		t.Errorf("held by %v", holder)
	}
}

// The recorded owner wins over the cached one.
func TestServiceOfCreatedBackendPool(t *testing.T) {
	p := bp("a", 0)
	c, e := newLoadedPool(t, p, nil)
	e.status.MadeFor = "svc"
	if got := c.statuses.ManagedFor(p); got != "svc" {
		t.Errorf("made for %q", got)
	}
	if got := newCluster(t).statuses.ManagedFor(bp("b", 0, func(p *v1alpha1.BackendPool) { p.Status.MadeFor = "other" })); got != "other" {
		t.Errorf("made for %q", got)
	}
	var two, none int32 = 2, 0
	for foreign, want := range map[*int32]bool{&two: false, &none: true, nil: false} {
		if e.status.Foreign = foreign; c.statuses.HasNoForeign(p) != want {
			t.Errorf("nothing foreign of %v", foreign)
		}
	}
}

// Owed members are relative to the record, and once the pool was in sync, to what was read.
func TestPendingAdminChanges(t *testing.T) {
	set := setOfNodes("n1", "n2", "n3", "n4")
	set.Draining = []membership.Drain{newDrain("n1"), newDrain("n2")}
	owes := func(e *Entry, down, back string) {
		t.Helper()
		d, b := e.PendingAdminChanges(set)
		if strings.Join(d, " ") != down || strings.Join(b, " ") != back {
			t.Errorf("to be Down %v, back %v; want %s, %s", d, b, down, back)
		}
	}
	e := &Entry{unsavedStatus: unsavedStatus{status: v1alpha1.BackendPoolStatus{Down: []v1alpha1.DownAddress{{Address: "10.0.0.2"}, {Address: "10.0.0.3"}}}}}
	owes(e, "n1 n2", "n3")
	before := setOfNodes("n1", "n4")
	before.Draining = []membership.Drain{newDrain("n1"), newDrain("n4")}
	e.recordDown(before)
	owes(e, "n2", "n4")
	turned := e.adminChanges(updater.Report{
		Outcome: diff.Terminal, AdminAttempted: true, MarkedDown: []netip.Addr{nodeIP("n1")}, MarkedUp: []netip.Addr{nodeIP("n3")},
	}, set)
	if got := strings.Join(turned.Down, " ") + "/" + strings.Join(turned.Back, " ") + "/" + strings.Join(turned.Failed, " "); got != "n1/n3/n2 n4" {
		t.Errorf("turned %s", got)
	}
	for outcome, want := range map[diff.Outcome]bool{diff.Retriable: true, diff.Terminal: true, diff.Written: false} {
		if HasAdminFailure(updater.Report{Outcome: outcome, AdminAttempted: true}) != want || HasAdminFailure(updater.Report{Outcome: outcome}) {
			t.Errorf("%s: whether admin states failed", outcome)
		}
	}
}

// The order of the record does not matter.
func TestTheOrderOfARecordDoesNotMatter(t *testing.T) {
	set := membership.Set{Addresses: []lb.Address{{Name: "a", IP: nodeIP("n2")}, {Name: "b", IP: nodeIP("n1")}}}
	set.Draining = []membership.Drain{{Node: "b", IP: nodeIP("n1")}, {Node: "a", IP: nodeIP("n2")}}
	for _, record := range [][]string{{"10.0.0.1", "10.0.0.2"}, {"10.0.0.2", "10.0.0.1"}} {
		e := &Entry{unsavedStatus: unsavedStatus{status: v1alpha1.BackendPoolStatus{WrittenAddresses: record, Down: []v1alpha1.DownAddress{{Address: record[0]}}}}}
		if ops := e.newOperations(schedule.Operation{ChangedAt: time.Unix(1, 0)}, set); len(ops) != 1 || !ops[0].Admin || ops[0].Impact.Stopping != 1 {
			t.Errorf("%v: %+v", record, ops)
		}
		e.status.Down = []v1alpha1.DownAddress{{Address: record[0]}, {Address: record[1]}}
		if ops := e.newOperations(schedule.Operation{ChangedAt: time.Unix(1, 0)}, set); len(ops) != 1 || ops[0].Admin {
			t.Errorf("%v: %+v", record, ops)
		}
	}
}

// A pool taken by another process is taken.
func TestTheUnionIsTaken(t *testing.T) {
	for _, tt := range []struct{ current, other, want string }{{"", "b", "b"}, {"a", "b", "a"}, {"a", "", "a"}} {
		s := &v1alpha1.BackendPoolStatus{PoolID: tt.current}
		if MergeRecord(s, &v1alpha1.BackendPoolStatus{PoolID: tt.other}); s.PoolID != tt.want || s.DownCount != nil {
			t.Errorf("%s and %s: %+v", tt.current, tt.other, s)
		}
	}
}
