// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Check is an invariant that must hold after every step.
type Check struct {
	// Name is short; Says states the invariant.
	Name, Says string
	// run returns the violations. The caller holds s.mu.
	run func(s *Stage) []string
}

// CheckError is the error of a violated check or an unmet expectation. Any other error of a step means
// that the step is invalid.
type CheckError struct {
	// Check is the check's name, or "expect".
	Check, How string
}

func (e *CheckError) Error() string {
	if e.Check == expected {
		return e.How
	}
	return fmt.Sprintf("check %q does not hold: %s", e.Check, e.How)
}

const expected = "expect"

// Checks returns all checks.
func Checks() []Check {
	return []Check{
		{"in sync at rest", "Once nothing is queued or under way, a pool holds what its BackendPool wants and what others put there, unless its last attempt failed for good; and what Weir set Down drains. The emulator's record counts for that, not Weir's.", checkIdleInSync},
		{"in sync in time", "With drift repair a pool holds what its BackendPool wants and what others put there one period, two intervals and 30 s after the last fault, wait or change, whatever happened to it.", checkDriftRepair},
		{"foreign survives", "No write takes a foreign address out of a pool, or changes it.", checkForeign},
		{"nothing unwanted", "An unwanted address is removed two intervals and 30 s after the last fault or wait.", checkExtra},
		{"soon in sync", "A change is in the pool two intervals and 30 s after it, or after the last fault or wait, unless it was given up.", checkChangeDelay},
		{"budget", "An operation is attempted once and then at most MaxRetries times; all retries are used before it is given up; waiting costs none.", checkRetries},
		{"not before the time", "No attempt begins and no pool is read or written before the time that Azure named to it, its load balancer or its subscription, whatever became of the change that met it; what follows an accepted write is not bound. When a quota's gate has opened, attempts begin as fast as the quota comes back. What has failed is tried again an interval after it began, at the earliest; of a pool that was attempted for a change within an interval the next is not attempted while the process has written as many times in five minutes as its share is (`share=N` percent of 1,000, 50 by default), and each lane may have two more under way; admin states have no pace.", checkRetryAfter},
		{"in time", "What is due, be it a look that was postponed, and not held up by Azure, its lane or the resource lease, is attempted within 10 s, with the lease within 30 s; no wait of the lanes' own is longer than an interval, nor longer than a third of one after an attempt while half of the share is left beyond what all pools may need; and no attempt longer than ten minutes.", checkDelays},
		{"fair", "What has been due for an interval precedes what became due later, and changes precede looks for drift, except those of a pool that was attempted for one within an interval.", checkOrder},
		{"hands off", "A pool is neither read nor written while its BackendPool is paused, or after it was deleted; and it is deleted when nothing of ours is left in the pool, unless it is paused.", checkNoAccess},
		{"alone", "No attempt calls Azure while another part holds its load balancer's lane, or outside of the resource lease; no write starts after the lease has ended or was lost, and no call after the process has lost its leadership.", checkExclusive},
		{"one leads", "No write leaves for Azure or the ledger from a process after another has begun to lead.", checkLeader},
		{"order of locks", "No lane is waited for while the resource lease is held.", checkLockOrder},
		{"the lease is shared", "Without a lane at work the lease is given back; after a turn of a minute no lane enters before it was, and it is then left to others for a while.", checkLeaseSharing},
		{"one write at a time", "A process never has two writes under way on one load balancer, but for pools that are pipelined: of those each is sent when the one before was accepted, and nothing else is written until the last has ended.", checkWriteOverlap},
		{"classes", "An attempt is tried again after 409, 412 and 429, after a write with an unknown outcome and one that was overtaken; a 429 to a poll is waited out, and no closed gate ends the wait for an accepted write; after what the SDK has retried or what trying cannot help it is not tried again; and a pool is missing only if Azure's answer names the pool itself.", checkOutcomes},
		{"words", "An attempt reports to a Service at most one Retrying and one final event; one that is stale, postponed or interrupted reports nothing, and one that finds the pool in sync only ends a problem; a look repeats no error for which a change was given up. What a process has reported is in the status, and the next one reads it.", checkEvents},
		{"observations", "An attempt is observed as a success or as a failure if it reported that, never as both.", checkMetrics},
		{"bounded queue", "The queue holds at most 1 + MaxRetries operations a pool, one for a Service that went, and one for admin states.", checkQueueSize},
		{"nothing rises", "Once a Service or a BackendPool is deleted no write puts its nodes back, and no pool that was deleted comes back.", checkRemoved},
		{"schema", "No request body breaks the schema of Azure's OpenAPI.", checkSchema},
		{"no secret", "The credential's token appears in no event, log line, report or trace.", checkSecrets},
	}
}

// runChecks runs all checks and resets the journal.
func (s *Stage) runChecks() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.pools {
		s.updateTimers(k)
		if s.isBlocked(k) {
			k.faultEnd = latest(k.faultEnd, time.Now())
		}
	}
	var errs []error
	for _, c := range Checks() {
		for _, how := range c.run(s) {
			errs = append(errs, &CheckError{Check: c.Name, How: how})
		}
	}
	j := &s.history
	j.calls, j.reports, j.foreignRemoved, j.overlaps, j.killedProcessReports, j.messages, j.leaseErrors, j.earlyAttempts = nil, nil, nil, nil, nil, nil, nil, nil
	j.expiredAttempts, j.orderErrors, j.orphanedAddresses, j.oldLeaderWrites = nil, nil, nil, nil
	return errors.Join(errs...)
}

func checkSchema(s *Stage) []string {
	var broken []string
	for _, v := range s.emulator.Violations() {
		broken = append(broken, v.Describe())
	}
	return broken
}

func checkSecrets(s *Stage) []string {
	texts := append([]string{s.history.logLines.takeText()}, s.history.messages...)
	for _, l := range s.history.lines {
		texts = append(texts, l.text)
	}
	for _, text := range texts {
		if at := strings.Index(text, testToken); at >= 0 {
			return []string{fmt.Sprintf("%q", strings.ReplaceAll(text[max(0, at-60):at], "\n", " ")+"…")}
		}
	}
	return nil
}
