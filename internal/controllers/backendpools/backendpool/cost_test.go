// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"errors"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

// The members are dropped once the pool is in sync. A failed attempt that did not compute them still reports
// the current ones.
func TestNoMembersAreKeptOfAPoolInSync(t *testing.T) {
	c, _, p := newRecordedPool(t)
	ref, e := RefOf(p), c.statuses.GetEntry(RefOf(p))
	attempt := func(o diff.Outcome) {
		t.Helper()
		if _, err := c.DesiredPool(ref); err != nil {
			t.Fatal(err)
		}
		r := updater.Report{Ref: ref, Outcome: o, InSync: o == diff.Written, At: time.Now()}
		if o == diff.Retriable {
			r.Fault = &armerror.Fault{Err: errors.New("not now")}
		}
		c.Report(t.Context(), r)
	}
	attempt(diff.Retriable)
	if e.attemptMembers() == nil {
		t.Error("after an attempt that failed nothing is known of the members")
	}
	attempt(diff.Written)
	if e.attemptMembers() != nil {
		t.Error("the members of a pool in sync are kept")
	}
	if got, want := c.membersOfAttempt(p, e), c.desiredOf(t, ref); len(got.Addresses) != len(want.Addresses) {
		t.Errorf("%d members, want %d", len(got.Addresses), len(want.Addresses))
	}
}
