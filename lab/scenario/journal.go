// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"net/netip"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
)

// journal is what happened in the current step, for the trace and the checks.
type journal struct {
	lines   []line
	calls   []call
	reports []report
	// lost are foreign addresses removed by a write.
	lost []string
	// overlaps are load balancers with two writes in flight.
	overlaps []string
	// hasty are attempts before their time, late are overdue attempts, unfair are attempts out of
	// order.
	hasty, late, unfair []string
	// left are Weir's addresses left by a deleted BackendPool.
	left []string
	// selfish are violations of the lease's fairness.
	selfish []string
	// deposed are writes of former leaders.
	deposed []string
	// posthumous are reports of killed processes.
	posthumous []string
	// sent counts requests.
	sent int
	// writes maps operations to the pool they write.
	writes map[string]lb.PoolKey
	// wholes maps operations that write a whole load balancer.
	wholes map[string]lb.LoadBalancerID
	logged safeBuffer
	texts  []string // published notifications

	// Counters until a verb reads them.
	counts map[string]int
	reads  []call
	events []event
	// lags are the times from change to effect.
	lags []time.Duration
	// success and failure are observations of the updater's metric.
	success, failure int
}

type line struct {
	at        time.Time
	who, text string
}

// call is a request and the state when it was sent.
type call struct {
	id   string
	at   time.Time
	pool lb.PoolID
	// kind is GET, PUT, poll or result (the GET after the last poll).
	kind string
	// again: a retry by the SDK.
	again bool
	// second: a read between the two writes of an attempt.
	second bool
	// closed is why the call is forbidden, or "".
	closed string
	// alone is why the process does not have exclusive access or may not work, or "".
	alone string
	// off is why there is no reason to call Azure, or "".
	off string
	// gone: the cluster had no desired state for the pool.
	gone  bool
	holds []netip.Addr
	// joint is set for a call about a whole load balancer.
	joint *joint
	// down counts the Down addresses.
	down int
	// created: the pool did not exist in Azure.
	created bool
}

// report is the updater's report of an attempt and the state of the stage.
type report struct {
	poolupdate.Report
	// failed and row include this attempt. newest: no operation was queued since the attempt began.
	failed, row int
	newest      bool
	// last is the last response of the attempt.
	last answer
	// passed is a change that was due when the worker began this attempt.
	passed string
	// bound is the latest start of the next attempt.
	bound time.Time
	// surrender is why the previous change was given up.
	surrender string
	// serviceGone: no desired state. held: the BackendPool is paused.
	serviceGone, held bool
	// before is the previous event of each Service for the pool.
	before map[string]string
}

// looks reports whether the attempt has no known change: a drift read, or the first read of a
// process.
func (r report) looks() bool { return r.Resync || r.ChangedAt.IsZero() }

// event is an event on a Service.
type event struct {
	service, word string
}

// safeBuffer is a concurrency-safe buffer.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// drain returns and clears the content.
func (b *safeBuffer) drain() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.b.String()
	b.b.Reset()
	return text
}
