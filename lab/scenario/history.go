// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"net/netip"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/updater"
)

// history is what happened in the current step, for the trace and the checks.
type history struct {
	lines   []line
	calls   []call
	reports []attemptReport
	// foreignRemoved are foreign addresses removed by a write.
	foreignRemoved []string
	// overlaps are load balancers with two writes in flight.
	overlaps []string
	// Attempts before their time, overdue attempts, and attempts out of order.
	earlyAttempts, expiredAttempts, orderErrors []string
	// orphanedAddresses are Weir's addresses left by a deleted BackendPool.
	orphanedAddresses []string
	// leaseErrors are violations of the lease's fairness.
	leaseErrors []string
	// oldLeaderWrites are writes of former leaders.
	oldLeaderWrites []string
	// killedProcessReports are reports of killed processes.
	killedProcessReports []string
	// sent counts requests.
	sent int
	// writes maps operations to the pool they write.
	writes map[string]lb.PoolKey
	// batchWrites maps operations that write a whole load balancer.
	batchWrites map[string]lb.LoadBalancerID
	logLines    safeBuffer
	messages    []string // published notifications

	// Counters until a verb reads them.
	counts map[string]int
	reads  []call
	events []event
	// delays are the times from change to effect.
	delays []time.Duration
	// success and failure are observations of the updater's metric.
	success, failure int
}

type line struct {
	at           time.Time
	source, text string
}

// call is a request and the state when it was sent.
type call struct {
	id   string
	at   time.Time
	pool lb.PoolID
	// kind is GET, PUT, poll or result (the GET after the last poll).
	kind string
	// isRetry: a retry by the SDK.
	isRetry bool
	// isStale: the sender has given it up, and no attempt receives the response.
	isStale bool
	// isSecondRead: a read between the two writes of an attempt.
	isSecondRead bool
	// closedReason is why the call is forbidden, or "".
	closedReason string
	// sharedReason is why the process does not have exclusive access or may not work, or "".
	sharedReason string
	// skipReason is why there is no reason to call Azure, or "".
	skipReason string
	// noDesiredState: the cluster had no desired state for the pool.
	noDesiredState bool
	addresses      []netip.Addr
	// joint is set for a call about a whole load balancer.
	joint *batch
	// downCount counts the Down addresses.
	downCount int
	// created: the pool did not exist in Azure.
	created bool
}

// attemptReport is the updater's report of an attempt and the state of the stage.
type attemptReport struct {
	updater.Report
	// Both counts include this attempt. The last field: no operation was queued since the attempt
	// began.
	failed, consecutiveFailures int
	newest                      bool
	// last is the last response of the attempt.
	last response
	// overtakenChange is a change that was due when the worker began this attempt.
	overtakenChange string
	// retryDeadline is the latest start of the next attempt.
	retryDeadline time.Time
	// failureReason is why the previous change was given up.
	failureReason string
	// Whether there is no desired state, and whether the BackendPool is paused.
	serviceDeleted, isPaused bool
	// previousEvents is the previous event of each Service for the pool.
	previousEvents map[string]string
}

// isReadOnly reports whether the attempt has no known change: a drift read, or the first read of a
// process.
func (r attemptReport) isReadOnly() bool { return r.Resync || r.ChangedAt.IsZero() }

type event struct {
	service, reason string
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// takeText returns and clears the content.
func (b *safeBuffer) takeText() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.b.String()
	b.b.Reset()
	return text
}
