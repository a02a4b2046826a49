// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

// AttemptDeadline is an attempt's timeout. The next read resolves what it leaves open.
const AttemptDeadline = 10 * time.Minute

// Result is what an attempt knows.
type Result struct {
	Outcome   Outcome
	Fault     *armerror.Fault
	Addresses []lb.Address
	// InterfaceHash identifies the network interfaces that were read; zero for addresses.
	InterfaceHash uint64
	// Observed includes foreign addresses; -1 if not read.
	Observed        int
	Change          Change
	written, down   []netip.Addr
	instances       map[string]netip.Addr
	sharedAddresses []lb.Address
	unresolvedIPs   []netip.Addr
	// Weir neither removes Overlapping addresses nor changes their admin state: another cluster wrote them.
	Overlapping    []netip.Addr
	ChangesMembers bool
	firstRecord    *Record
	HadConflict    bool
	// HoldsInterfaces is true where addresses are wanted: Outcome is about admin states, membership is rejected.
	HoldsInterfaces bool
	MachineTarget   *MachineTarget
	// MemberProgress is set while members are pending or failed; Outcome is then about admin states only.
	MemberProgress *MemberProgress
	Unusable       []Unusable
	TargetSet      bool
	pendingWrites
}

// NewResult returns an empty result. unguarded is true if Azure ignores If-Match on pools.
func NewResult(m Memory, unguarded bool) Result {
	return Result{Observed: -1, pendingWrites: pendingWrites{pendingEtag: m.PendingEtag, previousEtag: m.PendingEtag, unchangedEtag: m.unchangedEtag, mayRevert: m.MayRevert, ignoresEtag: unguarded}}
}

// IsInSync reports whether the pool is in sync.
func (r Result) IsInSync() bool { return r.StatesInSync() && r.MemberOutcome() == "" }

// MemberOutcome is the membership's outcome if Outcome is about admin states only, or empty.
func (r Result) MemberOutcome() Outcome {
	switch {
	case r.HoldsInterfaces:
		return Rejected
	case r.MemberProgress != nil:
		return r.MemberProgress.Outcome
	}
	return ""
}

// DesiredCount counts the wanted addresses with machines that can join.
func (r Result) DesiredCount() int {
	return len(r.Addresses) - len(r.unusableIPs()) - len(r.Overlapping)
}

func (r Result) unusableIPs() map[netip.Addr]bool {
	ips := make(map[netip.Addr]bool, len(r.Unusable))
	for _, u := range r.Unusable {
		ips[u.IP] = true
	}
	return ips
}

// StatesInSync reports whether the admin states are in sync.
func (r Result) StatesInSync() bool { return r.Outcome == Written || r.Outcome == Unchanged }

// SyncedFingerprint returns the fingerprint of the known membership, or nil.
func (r Result) SyncedFingerprint() *uint64 {
	if !r.IsInSync() || r.HasPending || len(r.Overlapping) > 0 { // overlapping nodes join once the other cluster has left
		return nil
	}
	return new(membership.Fingerprint(r.Addresses, r.sharedAddresses, membership.UnnamedAddresses(r.unresolvedIPs)))
}

// RecordWrite records that a write is being sent.
func (r *Result) RecordWrite() { r.pendingEtag, r.hasWritten = r.Change.Next.Etag, true }

// VerifyWrite returns an error if Azure does not show what was written.
func (r *Result) VerifyWrite(pool lb.Pool) error {
	r.Observed = len(pool.Addresses)
	if !r.Change.IsAppliedIn(copyAddresses(pool, r.Change.Next)) {
		return newRetriableFault(
			fmt.Errorf("pool %s: Azure reported success and shows %d addresses where %d were written, or other admin states",
				r.Change.Next.ID.Name, len(pool.Addresses), len(r.Change.Next.Addresses)))
	}
	r.CheckEtag(pool.Etag)
	return nil
}

// ForSecondTry returns the result before a second try, with what the first has read or may have written.
func (r Result) ForSecondTry(before Result, fault *armerror.Fault) Result {
	before.Observed, before.Addresses, before.firstRecord, before.HadConflict = r.Observed, r.Addresses, r.firstRecord, fault.IsPreconditionFailed()
	if fault.MayBeApplied {
		before.pendingEtag, before.previousEtag, before.hasWritten = r.pendingEtag, r.pendingEtag, true
	}
	return before
}

// FinishAttempt returns the result for err. stopping is true on shutdown, late after the deadline.
func (r Result) FinishAttempt(err error, stopping, late bool) Result {
	decided := !r.HasPending
	if err != nil {
		decided = r.pendingEtag != r.previousEtag && !armerror.FromError(err).MayBeApplied && !late
	}
	if decided {
		r.pendingEtag = "" // it has landed, or never will
	}
	switch {
	case err == nil:
		return r
	case stopping:
		r.Fault = armerror.Classify(armerror.Failure{IsShutdown: true}, err)
	case errors.Is(err, ErrNotReady):
		r.Outcome, r.Fault = Postponed, &armerror.Fault{Class: armerror.Retriable, Code: "NotReady", Reason: "not_ready", Err: err}
		return r
	case r.Observed < 0 && !r.HadConflict && armerror.FromError(err).Code == armerror.CodeRetryAfter: // no request was sent
		r.Outcome, r.Fault = Postponed, armerror.FromError(err)
		return r
	case late:
		r.Fault = newRetriableFault(fmt.Errorf("no end within %s: %w", AttemptDeadline, err))
	default:
		if r.Fault = armerror.FromError(err); r.Outcome == Rejected {
			return r
		}
	}
	r.Outcome = Outcome(r.Fault.Class)
	return r
}

// ReportedOutcome returns the outcome to report: for network interfaces that of the members.
func (r Result) ReportedOutcome(pool lb.PoolID) (Outcome, *armerror.Fault) {
	switch {
	case !r.StatesInSync():
	case r.HoldsInterfaces:
		return Rejected, errInterfaces(pool)
	case r.MemberProgress != nil:
		return r.MemberProgress.Outcome, r.MemberProgress.Fault
	}
	return r.Outcome, r.Fault
}

// FinalError returns the error for which a change without further retries is given up, or empty.
func FinalError(outcome Outcome, f *armerror.Fault) string {
	if outcome == Retriable || outcome == Terminal {
		return ErrorName(f)
	}
	return ""
}

// Outcome is how an attempt ended.
type Outcome string

// Some are classes of faults.
const (
	Written   Outcome = "Written"                   // Azure shows what was written
	Unchanged Outcome = "Unchanged"                 // the pool was already in sync
	Stale     Outcome = Outcome(armerror.Stale)     // the pool or its load balancer is gone
	Retriable Outcome = Outcome(armerror.Retriable) // the worker retries within the retry limit
	Terminal  Outcome = Outcome(armerror.Terminal)  // a retry cannot help
	Rejected  Outcome = "Refused"                   // Weir does not write this pool
	Postponed Outcome = "Postponed"                 // no attempt: one of Weir's own dependencies was not ready
	Shutdown  Outcome = Outcome(armerror.Shutdown)  // the worker is stopping
)

// ErrNotReady marks an attempt that stopped before a write for a reason outside Azure. It consumes no retry.
var ErrNotReady = errors.New("waiting")

func newRetriableFault(err error) *armerror.Fault {
	f := armerror.Classify(armerror.Failure{ResultUnknown: true}, err)
	f.MayBeApplied = false // the write has ended
	return f
}

// ErrorName identifies failures that are reported once.
func ErrorName(f *armerror.Fault) string {
	if f == nil {
		return ""
	}
	return string(f.Class) + " " + f.Code
}

// IsOverlapRejection reports whether Azure rejected a request because another write is running.
func IsOverlapRejection(f *armerror.Fault) bool {
	return f != nil && !f.OperationFailed && (f.Code == "RetryableErrorDueToAnotherOperation" || f.Code == "AnotherOperationInProgress")
}
